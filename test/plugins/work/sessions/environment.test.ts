import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, openWorld, type World } from '../../../fixtures/session-world.js'

let world: World

test.before(async () => {
  const slot = (name: string, ref: string, variable: string, required: boolean) => ({
    name,
    secret_ref: ref,
    target_env: variable,
    required,
  })
  world = await openWorld({
    env: {
      PATH: process.env.PATH,
      ALLOWED_TOKEN: 'allowed-1',
      WITHHELD_API_KEY: 'withheld-1',
      SOURCE_SECRET: 'slot-1',
    },
    config: {
      providers: {
        local: {
          env_allow: ['ALLOWED_TOKEN'],
          credential_slots: [
            slot('key', 'env:SOURCE_SECRET', 'GIVEN_KEY', true),
            slot('spare', 'env:NOT_THERE', 'SPARE_KEY', false),
          ],
        },
        strict: { command: 'cat', credential_slots: [slot('key', 'env:NOT_THERE', 'STRICT_KEY', true)] },
      },
    },
  })
  await world.agent('plain')
  await world.agent('login', { flags: '--login=please' })
})
test.after(() => world.close())

test('a secret-like variable reaches an agent only by name; a slot gives it another name', async () => {
  const { at } = await world.session('plain')
  const names = ['ALLOWED_TOKEN', 'WITHHELD_API_KEY', 'SOURCE_SECRET', 'GIVEN_KEY', 'SPARE_KEY']
  assert.equal(
    agentText(await world.prompt(at, names.map(name => `env ${name}`).join('\n')))
      .trim()
      .split('\n'),
    [
      'ALLOWED_TOKEN=allowed-1',
      'WITHHELD_API_KEY=undefined',
      'SOURCE_SECRET=undefined',
      'GIVEN_KEY=slot-1',
      'SPARE_KEY=undefined',
    ],
  )
})

test('the error of a required login names withheld variables and how to pass one', async () => {
  const { at } = await world.session('login')
  const { failure } = (await world.prompt(at, 'say hello')).at(-1)
  assert.match(failure.summary, /requires a login: Authentication required: please/)
  assert.match(failure.summary, /WITHHELD_API_KEY/)
  assert.match(failure.summary, /svc config set providers\.local/)
  assert.not.match(failure.summary, /ALLOWED_TOKEN|withheld-1/)
})

test('a missing required secret prevents the start of the provider, and is named', async () => {
  const folder = path.join(world.root, '.svc', 'agents', 'strict')
  await mkdir(folder, { recursive: true })
  await writeFile(path.join(folder, 'AGENT.md'), '---\nname: strict\nprovider: strict\n---\nDo as told.\n')
  const { at } = await world.session('strict')
  const { failure } = (await world.prompt(at, 'say hello')).at(-1)
  assert.match(failure.summary, /the credential key of the provider strict needs NOT_THERE/)
})

test.run()
