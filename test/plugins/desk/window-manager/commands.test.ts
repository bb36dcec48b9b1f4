import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { CommandContext } from '../../../../kernel/plugin.js'
import { cliCommands, cliVerbs } from '../../../../plugins/desk/window-manager/cli-table.js'
import { commandTable } from '../../../../plugins/desk/window-manager/reduce/command-table.js'
import { scene } from './scene.js'

const svc = await scene()
const { host } = svc
const home = await svc.workspace('desk')

/** Ids that commands told of. */
const made: string[] = []

/** What a command line prints; a refusal is `! code`. The last word may be options. */
async function call(
  line: string,
  args: string[] = [],
  options: CommandContext['options'] = {},
  file = '',
): Promise<string> {
  const entry = cliCommands.find(command => command.path === line)
  if (!entry) throw new Error(`there is no svc ${line}`)
  const printed: string[] = []
  const { run } = (await entry.load()) as { run: (context: CommandContext) => Promise<unknown> }
  const stop = (code: string): never => {
    throw new Error(`! ${code}`)
  }
  const names = entry.args ?? []
  const context: CommandContext = {
    path: line,
    args: Object.fromEntries(args.map((value, i) => [names[i]?.name ?? 'none', value])),
    options,
    cwd: path.join(svc.folder, 'desk'),
    home: host.home,
    signal: new AbortController().signal,
    stdin: async () => file,
    readFile: async () => file,
    onInterrupt: () => () => {},
    fault: stop,
    client: {
      async request(method, url, body) {
        const reply = await host.request(method, url, body)
        return reply.status < 400 ? reply.body : stop(reply.body.code)
      },
      async *stream() {},
    },
    out: {
      json: false,
      line: text => printed.push(text),
      text: text => printed.push(text),
      id: id => made.push(id),
      value: value => printed.push(JSON.stringify(value)),
      table: (rows, _, empty) => printed.push(rows.length === 0 ? String(empty) : JSON.stringify(rows)),
      color: (_, text) => text,
    },
  }
  await run(context).catch((error: Error) => printed.push(error.message))
  return printed.join('\n').replace(/nd_[0-9a-f]{16}/g, 'nd')
}

test('every command has a verb or is part of svc layout apply, and is in the README', () => {
  const readme = readFileSync(new URL('../../../../plugins/desk/window-manager/README.md', import.meta.url), 'utf8')
  const said = new Set<string>([...Object.values(cliVerbs).map(({ command }) => command), 'layout.replace'])
  for (const id of Object.keys(commandTable)) {
    assert.ok(said.has(id), `nothing of the command line does ${id}`)
    assert.ok(readme.includes(`\`${id}\``), `the README does not name ${id}`)
  }
})

test('windows are arranged by commands and shown as a tree', async () => {
  assert.is(await call('desktop list'), 'Desktop 1  (desktop-1)\n  empty\nno windows; open one: svc window open <app>')
  await call('window open', ['mail'], { id: 'a' })
  await call('window open', ['code'], { id: 'b' })
  assert.is(
    await call('window open', ['shell'], { id: 'c', beside: 'b', edge: 'bottom' }),
    [
      'Desktop 1  (desktop-1)',
      '  beside each other (50% 50%; nd)',
      '    mail  a',
      '    below each other (50% 50%; nd)',
      '      code  b',
      '      shell  c *',
    ].join('\n'),
  )
  assert.match(await call('window group', ['c', 'a']), '  stack\n        mail  a\n      ▸ shell  c *\n    code  b')
  assert.match(await call('window resize', ['b', 'horizontal', '0.2']), '(30% 70%; nd)')
  assert.match(await call('window float', ['b'], { minimized: true }), '  ~ code  b minimized')
  assert.match(await call('window navigate', ['a', '/inbox']), 'mail /inbox  a')
  assert.match(await call('layout balance', [], { preview: true }), 'nothing to change')
  await call('window open', ['chat'], { id: 'd', preview: true })
  assert.equal(made, ['desktop-1', 'a', 'b', 'c'], 'for --quiet')
  assert.match(await call('layout undo'), 'mail  a')
})

test('an impossible change is reported with its code', async () => {
  assert.is(await call('window close', ['nope']), '! window_manager_window_not_found')
  assert.is(await call('window resize', ['a', 'horizontal', 'much']), '! usage')
  assert.is(await call('desktop switch', ['desktop-1']), '! client_not_found')
  assert.is(await call('desktop list', [], { workspace: 'nowhere' }), '! workspace_not_found')
  assert.is(await call('layout apply'), '! usage')
  assert.is(await call('layout apply', ['a'], { viewport: 'wide' }), '! usage')
  assert.is(await call('layout apply', [], { file: 'x' }, '{'), '! usage')
})

test('an arrangement is exported as a file, checked, saved and applied again', async () => {
  const exported = await call('layout export', [], { name: 'Mine' })
  assert.is(JSON.parse(exported).display_name, 'Mine')
  const document = await call('layout get')
  assert.is(await call('layout validate', ['x'], {}, document), 'valid')
  assert.match(
    await call('layout validate', ['x'], {}, document.replace('"version": 2', '"version": 3')),
    'topology.version',
  )
  assert.match(await call('layout export', [], { save: 'mine' }), 'saved layout mine; apply it: svc layout apply mine')
  await host.request('POST', `${svc.base(home)}/clients`, { client_id: 'screen' })
  assert.match(await call('desktop create', ['Review'], { id: 'two', purpose: 'focus' }), 'Review  (two, focus, shown)')
  assert.match(await call('desktop switch', ['desktop-1']), 'Desktop 1  (desktop-1, shown)')
  assert.not.match(await call('layout apply', ['mine']), 'Review')
  assert.not.match(await call('layout preview', ['mine']), 'applied')
  assert.match(await call('layout preview', ['mine']), 'a preview: nothing was changed')
})

test.after(() => svc.end())
test.run()
