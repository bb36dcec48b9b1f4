import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sourceOf } from '../../../cli/import/foreign-file.js'
import { importMcpFiles } from '../../../cli/import/mcp-servers.js'
import type { WantedServer } from '../../../cli/import/plan.js'
import { around } from './around.js'

const FILE = '/work/app/.vscode/mcp.json'
const read = (text: string, more = {}) => importMcpFiles([sourceOf(FILE, Buffer.from(text))], around(more))
const servers = (found: ReturnType<typeof read>) =>
  Object.fromEntries((found.wanted as WantedServer[]).map(({ name, server }) => [name, server]))
const left = (found: ReturnType<typeof read>) => found.left.map(({ what, line, why }) => `${line} ${what}: ${why}`)

test('every dialect is read: names of the list, of a URL and of a transport', () => {
  const entry = '{"a": {"command": "x"}}'
  for (const text of [
    `{"mcpServers": ${entry}}`,
    `{"servers": ${entry}}`,
    `{"mcp": {"servers": ${entry}}}`,
    `{"context_servers": ${entry}}`,
    `\uFEFF{\r\n// comment\r\n"mcpServers": ${entry},\r\n}`,
  ])
    assert.equal(servers(read(text)), { a: { command: 'x' } }, text)
  const found = read(`{"servers": {
    "url": {"type": "http", "url": "https://a.example/mcp"},
    "server": {"serverUrl": "https://b.example/mcp"},
    "gemini": {"httpUrl": "https://c.example/mcp", "url": "https://sse.example"},
    "streaming": {"type": "streamable-http", "url": "https://d.example/mcp"},
    "zed": {"source": "custom", "command": {"path": "prog", "args": ["-v"], "env": null}},
    "list": {"command": ["uvx", "tool"], "args": null},
    "typed": {"type": "stdio", "command": "x", "args": [1, true, "s"], "env": {"PORT": 3100, "ON": true, "N": null}}
  }}`)
  assert.equal(found.left, [])
  assert.equal(servers(found), {
    url: { url: 'https://a.example/mcp' },
    server: { url: 'https://b.example/mcp' },
    gemini: { url: 'https://c.example/mcp' },
    streaming: { url: 'https://d.example/mcp' },
    zed: { command: 'prog', args: ['-v'] },
    list: { command: 'uvx', args: ['tool'] },
    typed: { command: 'x', args: ['1', 'true', 's'], env: { PORT: '3100', ON: 'true' } },
  })
})

test('variables are read from the environment, with a default, from an editor and by reference', () => {
  const found = read(
    `{"servers": {
      "a": {"command": "\${HOME_DIR}/bin/x", "args": ["\${NONE:-dflt}", "\${env:SET}", "\${workspaceFolder}/s", "\${userHome}"],
            "cwd": "\${workspaceFolder}/sub", "env": {"REF": "\${TOKEN}", "SHORT": "$TOKEN", "IN": "a \${SET} b"}},
      "unset": {"command": "x", "env": {"A": "pre \${MISSING}"}},
      "asked": {"command": "x", "args": ["\${input:key}"]}
    }, "inputs": [{"id": "key", "type": "promptString", "password": true}]}`,
    { env: { HOME_DIR: '/opt', SET: 'yes' } },
  )
  assert.equal(servers(found), {
    a: {
      command: 'sh',
      args: [
        '-c',
        'cd "$1" && shift && exec "$@"',
        'sh',
        '/work/app/sub',
        '/opt/bin/x',
        'dflt',
        'yes',
        '/work/app/s',
        '/home/me',
      ],
      env: { IN: 'a yes b' },
      secret_env: { REF: 'env:TOKEN', SHORT: 'env:TOKEN' },
    },
  })
  assert.equal(left(found), [
    '6 inputs: svc does not prompt for values; store them: svc vault put',
    `4 unset: \${MISSING} is not set here; set it and import again`,
    `5 asked: \${input:key} is a value that the other program prompts for; write the value itself`,
  ])
})

test('secrets become references, and only the command that stores them contains their values', () => {
  const secrets = [
    'ghp_abcdefghijklmnopqrstuvwxyz012345',
    'Bearer abcdefghijklmnop',
    'hunter2hunter2',
    'postgres://u:pa55word@h/db',
  ]
  const found =
    read(`{"mcpServers": {"My Server": {"command": "x", "env": {"GH": "${secrets[0]}", "apiKey": "${secrets[2]}",
    "DATABASE": "${secrets[3]}", "LEVEL": "debug", "TOKEN": "abc"}},
    "web": {"url": "https://h.example/mcp", "headers": {"Authorization": "${secrets[1]}", "X-Team": "red"}},
    "plain": {"command": "x", "args": ["--token", "${secrets[0]}"]}}}`)
  assert.equal(servers(found)['My-Server'], {
    command: 'x',
    env: { LEVEL: 'debug', TOKEN: 'abc' },
    secret_env: {
      GH: 'vault:mcp/global/my-server/env/GH',
      apiKey: 'vault:mcp/global/my-server/env/apiKey',
      DATABASE: 'vault:mcp/global/my-server/env/DATABASE',
    },
  })
  assert.equal(servers(found).web, {
    url: 'https://h.example/mcp',
    headers: { 'X-Team': 'red' },
    secret_headers: { Authorization: 'vault:mcp/global/web/header/Authorization' },
  })
  const stored = (found.wanted as WantedServer[]).flatMap(({ secrets }) => Object.values(secrets))
  assert.equal([...stored].sort(), [...secrets].sort())
  assert.match(found.wanted[2]?.notes.join() ?? '', 'looks like a secret')
  const rest = JSON.stringify([found.wanted.slice(0, 2).map(one => ({ ...one, secrets: {} })), found.left])
  for (const secret of secrets) assert.not.ok(rest.includes(secret), secret)
})

test('a bad entry is reported with its line and does not affect the others', () => {
  const found = read(`{"mcpServers": {
    "good": {"command": "x"},
    "off": {"command": "x", "disabled": true},
    "text": "x",
    "none": {"link": "http://x"},
    "both": {"command": "x", "url": "http://x/"},
    "sse": {"type": "sse", "url": "http://x/"},
    "odd": {"type": "grpc", "url": "http://x/"},
    "file": {"url": "file:///etc/passwd"},
    "login": {"url": "http://user:pass@x/"},
    "env": {"command": "x", "env": ["A=1"]},
    "deep": {"command": "x", "env": {"A": {"b": 1}}},
    "name": {"command": "x", "env": {"A B": "1"}},
    "<img src=x>": {"command": "x"},
    "good": {"command": "later"},
    "more": {"command": "x", "alwaysAllow": ["a"], "newMember": 1}
  }}`)
  assert.equal(servers(found), { good: { command: 'later' }, more: { command: 'x' } })
  assert.equal(
    found.left.map(({ line }) => line).sort((a, b) => a - b),
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16],
  )
  assert.match(left(found).join('\n'), 'more.newMember: svc does not know this member')
})

test('files that contain no server list are refused', () => {
  assert.equal(left(read('{"a": 1}')), ['1 mcp.json: it has none of mcpServers, servers, mcp_servers, context_servers'])
  assert.match(left(read(''))[0] ?? '', '1 mcp.json: not valid JSON: a value is missing')
  assert.match(left(read('{"mcpServers":\n [1]}'))[0] ?? '', /^1 mcp.json: mcpServers is a list/)
  assert.match(
    left(read('{"mcpServers": {\n"a": {"command": "x"'))[0] ?? '',
    /^[12] mcp.json: not valid JSON: this \{ is not closed/,
  )
  assert.match(left(read(`${'['.repeat(200_000)}`))[0] ?? '', 'not valid JSON')
  const odd = read('{"mcpServers": {"__proto__": {"command": "x"}, "constructor": {"command": "y"}}}')
  assert.equal(
    odd.wanted.map(({ name }) => name),
    ['proto__', 'constructor'],
  )
})

test.run()
