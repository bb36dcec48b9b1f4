import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { splitCommand } from '../../../../plugins/agents/agents/definition/command.js'
import { DefinitionError } from '../../../../plugins/agents/agents/definition/definition.js'
import { parseDefinition } from '../../../../plugins/agents/agents/definition/definition-file.js'
import { label } from '../../../fixtures/cases.js'
import { FULL } from './full-definition.js'

const place = { origin: 'global', source: 'home' } as const
const parse = (text: string, name = 'reviewer') => parseDefinition(name, Buffer.from(text), place)

test('a complete definition is parsed', () => {
  const { digest, ...definition } = parse(FULL)
  assert.match(digest, /^sha256:[0-9a-f]{64}$/)
  assert.equal(definition, {
    name: 'reviewer',
    prompt: 'You review code.',
    command: 'agent --mode "two words"',
    provider: 'codex',
    model: 'some-model',
    reasoningEffort: 'high',
    permissions: 'approve-reads',
    tools: ['service__skill_*', 'mcp__git__log'],
    toolsets: ['core'],
    denyTools: ['service__bridges_update'],
    categoryPath: ['Engineering', 'Review'],
    disabledSkills: ['old-skill'],
    mcpServers: [
      {
        name: 'git',
        command: 'uvx',
        args: ['mcp-server-git'],
        env: { GIT_TOKEN: 't0p', MODE: 'fast' },
        auth: { type: 'oauth', client_secret_ref: 'vault:mcp/x' },
      },
    ],
    hooks: [{ name: 'gate', event: 'tool.pre_call', mode: 'sync', command: './gate.sh' }],
    ...place,
  })
})

test('TOML, both line endings and --- within the text are parsed', () => {
  const toml = parse(
    '---\nname = "reviewer"\npermissions = "deny-all"\ntools = ["service__a"]\n[skills]\ndisabled = ["x"]\n---\nGo.',
  )
  assert.is(toml.permissions, 'deny-all')
  assert.equal(toml.disabledSkills, ['x'])
  assert.is(parse('---\r\nname: reviewer\r\n---\r\nOne.\r\n---\r\nTwo.\r\n').prompt, 'One.\n---\nTwo.')
})

const INVALID: readonly [what: string, text: string, kind: DefinitionError['kind'], says: RegExp][] = [
  ['no front matter', 'You review code.', 'no_frontmatter', /start with/],
  ['unclosed front matter', '---\nname: reviewer\n', 'no_frontmatter', /not closed/],
  ['empty front matter', '---\n---\nGo.', 'field', /name/],
  ['an empty text', '---\nname: reviewer\n---\n \n', 'prompt', /empty/],
  ['another name', '---\nname: other\n---\nGo.', 'name', /folder/],
  ['a name in capitals', '---\nname: Reviewer\n---\nGo.', 'field', /name/],
  ['an unknown field', '---\nname: reviewer\nprompt_file: x\n---\nGo.', 'field', /prompt_file: unknown field/],
  ['a wrong type', '---\nname: reviewer\ntools: all\n---\nGo.', 'field', /tools/],
  ['broken YAML', '---\nname: [reviewer\n---\nGo.', 'frontmatter', /YAML/],
  ['broken TOML', '---\nname = "reviewer\nx = 1\n---\nGo.', 'frontmatter', /TOML/],
  ['a duplicate name', '---\nname: reviewer\nname: reviewer\n---\nGo.', 'frontmatter', /YAML/],
  ['an unknown mode', '---\nname: reviewer\npermissions: approve\n---\nGo.', 'field', /permissions/],
  ['every tool', '---\nname: reviewer\ntools: ["*"]\n---\nGo.', 'field', /tools/],
  ['a star in the middle', '---\nname: reviewer\ntools: ["mcp__*__log"]\n---\nGo.', 'field', /tools/],
  ['dots in a tool', '---\nname: reviewer\ntools: ["mcp.git.log"]\n---\nGo.', 'field', /tools/],
  ['a hyphen in a tool', '---\nname: reviewer\ndeny_tools: ["mcp__git-log__x"]\n---\nGo.', 'field', /deny_tools/],
  ['a path as category', '---\nname: reviewer\ncategory_path: ["a/b"]\n---\nGo.', 'field', /category_path/],
  ['.. as category', '---\nname: reviewer\ncategory_path: [".."]\n---\nGo.', 'field', /category_path/],
  ['a pipe', '---\nname: reviewer\ncommand: "a | b"\n---\nGo.', 'field', /command: \|/],
  [
    'an unusable required server',
    '---\nname: reviewer\nmcp_servers: [{name: x, command: c, url: u, required: true}]\n---\nGo.',
    'field',
    /exactly one/,
  ],
  [
    'an invalid required hook',
    '---\nname: reviewer\nhooks: [{name: gate, required: true}]\n---\nGo.',
    'field',
    /hooks\.0\.event/,
  ],
  [
    'nested aliases',
    `---\nname: reviewer\na: &a [x,x,x,x,x,x,x,x,x]\n${[...'bcdefgh'].map((c, i) => `${c}: &${c} [${Array(9).fill(`*${'abcdefg'[i]}`)}]`).join('\n')}\n---\nGo.`,
    'frontmatter',
    /YAML/,
  ],
]
for (const [what, text, kind, says] of INVALID) {
  test(`an invalid definition is refused: ${what}`, () => {
    try {
      parse(text)
    } catch (error) {
      assert.instance(error, DefinitionError)
      assert.is((error as DefinitionError).kind, kind)
      assert.match((error as DefinitionError).message, says)
      return
    }
    assert.unreachable('it was accepted')
  })
}

test('an invalid list entry is skipped and reported with line and column', () => {
  const head = [
    'name: reviewer',
    'permissions:',
    'tools:',
    '  - service__a',
    '  - mcp.git.log',
    'toolsets: [core, Not One]',
    'mcp_servers:',
    '  - { name: fine, command: c, args: [1, true], env: { PORT: 3100, NOT_SET: } }',
    '  - { name: both, command: c, url: u }',
    '  - { name: boxed, url: u, sandbox: default }',
    '  - { name: open, url: u, auth: { client_secret_ref: abc } }',
    'hooks:',
    '  - { name: gate, event: tool.pre_call, command: ./gate.sh }',
    '  - { name: lost }',
  ]
  const definition = parse(`---\n${head.join('\n')}\n---\nGo.`)
  assert.equal(definition.tools, ['service__a'])
  assert.equal(definition.toolsets, ['core'])
  assert.equal(definition.mcpServers, [{ name: 'fine', command: 'c', args: ['1', 'true'], env: { PORT: '3100' } }])
  assert.equal(
    definition.hooks.map(({ name }) => name),
    ['gate'],
  )
  assert.is(definition.permissions, undefined, 'null is nothing')
  const leftOut = [...(definition.leftOut ?? [])].sort()
  assert.is(leftOut.length, 6)
  assert.match(leftOut[0] ?? '', /^line 10, column 5: mcp_servers\.1: give exactly one/)
  assert.match(leftOut.find(text => text.includes('tools.1')) ?? '', /^line 6, column 5: tools\.1: a tool id/)
  assert.match(leftOut.find(text => text.includes('toolsets.1')) ?? '', /^line 7, column 18: /)
  assert.match(leftOut.find(text => text.includes('hooks.1')) ?? '', /^line 15, column 5: hooks\.1\.event/)
})

test('a definition is refused where a skipped entry would allow more', () => {
  for (const [list, value] of [
    ['tools', '["*"]'],
    ['toolsets', '["Not One"]'],
    ['deny_tools', '[service__a, "*"]'],
  ])
    assert.throws(() => parse(`---\nname: reviewer\n${list}: ${value}\n---\nGo.`), new RegExp(`line 3.*${list}`))
})

test('an error in front matter has line and column, in YAML and in TOML', () => {
  assert.throws(() => parse('---\nname: reviewer\nmodel: [a\n---\nGo.'), /^line \d+, column \d+: not valid YAML/)
  assert.throws(() => parse('---\nname = "reviewer"\nx = \n---\nGo.'), /^line 3, column \d+: not valid TOML/)
  assert.throws(() => parse('\uFEFF---\nname: reviewer\nmodel: 7\n---\nGo.'), /^line 3, column 8: model/)
})

test('a reserved name, binary content and an oversized file are invalid', () => {
  assert.throws(() => parse('---\nname: coordinator\n---\nGo.', 'coordinator'), /reserved/)
  assert.throws(() => parseDefinition('a', Buffer.from([0x2d, 0x2d, 0x2d, 0x0a, 0xff, 0xfe]), place), /UTF-8/)
  assert.throws(() => parseDefinition('a', Buffer.alloc(512 * 1024 + 1), place), /at most/)
})

test('a command is split into words', () => {
  assert.equal(splitCommand(`node "my agent.js" --x='$HOME' a\\ b`), ['node', 'my agent.js', '--x=$HOME', 'a b'])
})

for (const line of [
  '',
  '""',
  'a; b',
  'a && b',
  'a > f',
  'a < f',
  'a | b',
  'a $HOME',
  'a "$X"',
  'a `b`',
  'a $(b)',
  'a *.ts',
  'a # b',
  'a "b',
  "a 'b",
  'a \\',
  'X=1 a',
  'a\nb',
  'a\0b',
])
  test(`a command that needs a shell is refused: ${label(line)}`, () => assert.ok('wrong' in splitCommand(line)))

test.run()
