import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Redactors } from '../../../kernel/platform.js'
import { definePlugin, type Plugin, type Redactor, surfaceOf } from '../../../kernel/plugin.js'
import { fromVersionOne } from '../../../plugins/delivery/extensions/load/version-one.js'
import { redaction } from '../../../plugins/index.js'
import { bootBare as boot } from '../../harness/kernel.js'

const redactor: Redactor = {
  text: text => text.replaceAll('hush', '****'),
  value: value => value,
  stream: () => ({ push: piece => piece, end: () => '', held: 0 }),
  follow: () => {},
}

/** A plugin of `apiVersion: 1`, which tapped `redact` on the kernel where one of today contributes to a registry. */
const old = (name: string, entries: () => readonly unknown[], replaces?: string): Plugin =>
  fromVersionOne(
    definePlugin({ name, version: '1', ...(replaces ? { replaces } : {}) }).surface({
      hooks: { redact: entries },
    } as never),
  )

test('a plugin that taps redact of apiVersion 1 replaces values', async () => {
  const svc = await boot({ plugins: [old('acme.quiet', () => [redactor])] })
  assert.is(svc.kernel.redact.text('hush now'), '**** now')
  await svc.kernel.host.unload('acme.quiet')
  await svc.close()
})

test('a replacement of the redaction plugin provides its services', async () => {
  const { surface } = redaction
  const replacing = old('acme.quiet', () => [redactor], 'redaction')
  const plugin = { ...replacing, surface: { ...replacing.surface, settings: surface.settings ?? [] } }
  const svc = await boot({ plugins: [redaction, plugin], replace: ['acme.quiet'] })
  const { state, replacedBy } = svc.kernel.host.plugins().find(({ name }) => name === 'redaction') ?? {}
  assert.equal([state, replacedBy], [{ status: 'active' }, 'acme.quiet'])
  assert.is(svc.kernel.redact.text('hush now'), '**** now')
  await svc.close()
})

test('a drop-in redactor without a required function is skipped, and texts are unchanged', async () => {
  const { contribute } = surfaceOf<unknown>()
  const wrong = definePlugin({ name: 'acme.wrong', version: '1' }).surface({
    registries: [contribute(Redactors, () => [{ text: (text: string) => `<${text}>` } as never])],
  })
  const svc = await boot({ plugins: [wrong] })
  assert.is(svc.kernel.redact.text('hush now'), 'hush now')
  const fault = svc.kernel.host.faults().find(({ owner }) => owner === 'acme.wrong')
  assert.is(fault?.where, Redactors.registry)
  await svc.close()
})

test.run()
