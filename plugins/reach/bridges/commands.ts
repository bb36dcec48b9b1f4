import type { CommandContext } from '../../../kernel/plugin.js'
import type { AppManifestReply, BridgeSecretBindingReply } from '../../../schemas/bridges.js'
import { refOf } from './instances/secrets-ref.js'

export { setUp as runSetup } from './instances/setup.js'

/** `svc bridge manifest slack <id>`: prints only the manifest, so that it can be saved as it is. */
export async function runSlackManifest({ args, client, out }: CommandContext): Promise<void> {
  const query = new URLSearchParams({ instance: args.id ?? '' })
  const { manifest } = (await client.request(
    'GET',
    `/api/bridges/providers/slack/manifest?${query}`,
  )) as AppManifestReply
  if (out.json) return out.value(manifest)
  for (const line of JSON.stringify(manifest, null, 2).split('\n')) out.line(line)
}

/**
 * `svc bridge secret-bindings put <id> <slot>`: reads the value from a prompt or a pipe, because arguments are visible
 * to all users of the machine.
 */
export async function runPutSecret(context: CommandContext): Promise<void> {
  const { client, out, args, options, unseen, stdin, fault } = context
  const { id = '', slot = '' } = args
  const path = `/api/bridges/${encodeURIComponent(id)}`
  // Checked first, so that a wrong id fails before the person types a value.
  await client.request('GET', path)
  const typed = unseen && !options['value-stdin'] ? await unseen(`value of ${slot}: `) : await stdin()
  // `echo` adds one line break, which is not part of the value.
  const value = typed?.replace(/\r?\n$/, '')
  if (!value) {
    const next = `svc bridge secret-bindings put ${id} ${slot}`
    return fault('usage', 'no value was given: type it, or pipe it to standard input', next)
  }
  const body = { kind: String(options.kind ?? 'secret'), secret_ref: refOf(id, slot), secret_value: value }
  const url = `${path}/secret-bindings/${encodeURIComponent(slot)}`
  const reply = (await client.request('PUT', url, body)) as BridgeSecretBindingReply
  if (out.json) return out.value(reply)
  out.id(reply.binding.secret_ref)
  out.line(`bound ${slot} of ${id}`)
}
