import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Client } from '../../../../cli/client.js'
import type { RouteCommand } from '../../../../cli/commands/command-data.js'
import { describeRoutes } from '../../../../cli/commands/describe-commands.js'
import type { Io } from '../../../../cli/io.js'
import { runRoute } from '../../../../cli/run-route.js'
import { Output } from '../../../../cli/show/output.js'
import bundles from '../../../../plugins/delivery/bundles/index.js'
import { invocationOf } from '../../../cli/invocation-of.js'
import { REQUEST, scene } from './bundles-scene.js'

const commands = new Map(describeRoutes(bundles.surface.routes ?? []).map(entry => [entry.path, entry]))

test('every svc bundle command exists with its options', () => {
  const shape = (entry: RouteCommand | undefined) => [
    ...(entry?.args ?? []).map(({ name }) => `<${name}>`),
    ...(entry?.options ?? []).map(({ option, required }) => `--${option}${required ? '' : '?'}`),
  ]
  const activation = [
    '--extension',
    '--bundle',
    '--profile',
    '--scope?',
    '--workspace?',
    '--confirm-network-requirement?',
    '--global?',
  ]
  assert.equal(Object.fromEntries([...commands].map(([path, entry]) => [path, shape(entry)])), {
    'bundle catalog': [],
    'bundle preview': activation,
    'bundle activate': activation,
    'bundle list': [],
    'bundle get': ['<id>'],
    'bundle update': ['<id>', '--expected-version', '--confirm-network-requirement?'],
    'bundle deactivate': ['<id>'],
    'bundle network-settings': [],
  })
})

test('an activation is shown by its fields with a table of its inventory; lists name their entries', async () => {
  const s = await scene()
  await s.kit()
  let text = ''
  const sink = {
    write: (more: string) => {
      text += more
    },
  }
  const io = { env: {}, cwd: '/', stdout: sink, stderr: sink } as unknown as Io
  const client = {
    request: async (method: string, url: string, body?: unknown) => (await s.request(method as 'GET', url, body)).body,
  } as unknown as Client
  const svc = async (path: string, ...words: string[]) => {
    text = ''
    const entry = commands.get(path) as RouteCommand
    await runRoute(entry, await invocationOf(entry, words), { io, out: new Output(io, 'human'), client })
    return text
  }
  const names = [
    '--extension',
    REQUEST.extension_name,
    '--bundle',
    REQUEST.bundle_name,
    '--profile',
    REQUEST.profile_name,
  ]
  const preview = await svc('bundle preview', ...names)
  assert.match(preview, /^Extension +demo-kit$/m)
  assert.match(preview, /^Channels +release, aside$/m)
  assert.match(preview, /\n\nKIND +NAME +ID\nwindow_layout +Layout two-up +lay_\w+\nagent +planner +agt_/)
  const made = await svc('bundle activate', ...names)
  const [, id = ''] = /^ID +(act_\w+)$/m.exec(made) ?? []
  assert.match(await svc('bundle catalog'), /demo-kit +release-kit +default +All for a release/)
  assert.match(await svc('bundle list'), new RegExp(`^${id} +demo-kit`, 'm'))
  assert.match(await svc('bundle update', id, '--expected-version', '1'), /^Version +2$/m)
  await s.extensions.unload('demo-kit')
  await s.quiet()
  assert.match(await svc('bundle get', id), /^Not taken up +there is no extension "demo-kit"/m)
  assert.is(await svc('bundle deactivate', id), `deactivated ${id}\n`)
  assert.is(await svc('bundle network-settings'), 'no active profile declares a channel\n')
  await s.end()
})

test.run()
