import { command } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { VaultSecretReply } from '../../../schemas/vault.js'

/** `svc vault put <ref>`: reads the value from a prompt or a pipe, because all local users can see command arguments. */
export async function runPut(context: CommandContext): Promise<void> {
  const { client, out, options, args } = context
  const { ref = '' } = args
  if (context.unseen && !options['value-stdin']) await checkReference(context, ref)
  const reply = (await client.request('PUT', '/api/vault/secrets', {
    ref,
    secret_value: await readValue(context, ref),
    ...(options.kind === undefined ? {} : { kind: options.kind }),
    ...(options['allow-short'] ? { allow_short: true } : {}),
  })) as VaultSecretReply
  if (out.json) return out.value(reply)
  out.id(reply.secret.ref)
  out.line(`stored ${reply.secret.ref}, version ${reply.secret.version}`)
}

/** Checks the reference before the prompt for its value. */
async function checkReference({ client }: CommandContext, ref: string): Promise<void> {
  await client.request('GET', `/api/vault/secrets/metadata?${new URLSearchParams({ ref })}`).catch(error => {
    if (error.code !== 'vault_secret_not_found') throw error
  })
}

async function readValue({ unseen, stdin, options, fault }: CommandContext, ref: string): Promise<string> {
  const typed = unseen && !options['value-stdin'] ? await unseen(`value of ${ref}: `) : await stdin()
  // The final line break, as `echo` writes it, is not part of the value.
  const value = typed?.replace(/\r?\n$/, '')
  if (value) return value
  return fault('usage', 'no value was given: type it, or pipe it to standard input', command('vault put', ref))
}
