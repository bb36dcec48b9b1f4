import { type CommandContext, messageOf } from '../../../kernel/plugin.js'
import type { ApprovalReply, InvokeToolReply } from '../../../schemas/tools.js'

/** `svc tool call`. */
export async function runCall(context: CommandContext): Promise<number> {
  const { args, options, client, out } = context
  const { id = '' } = args
  const body = {
    input: await inputOf(context, args.input),
    ...(options.session === undefined ? {} : { session_id: String(options.session) }),
    ...(options.workspace === undefined || options.session !== undefined
      ? {}
      : { workspace_id: String(options.workspace) }),
    ...(options.token === undefined ? {} : { approval_token: String(options.token) }),
  }
  const reply = (await client.request('POST', `/api/tools/${encodeURIComponent(id)}/invoke`, body, { waits: true })) as
    | InvokeToolReply
    | {
        readonly error: {
          readonly code: string
          readonly message: string
          readonly details?: { readonly next?: string }
        }
      }
  if ('error' in reply) {
    const { code, message, details } = reply.error
    return context.fault(code, message, details?.next)
  }
  out.value(
    out.json ? reply : (reply.result.structured ?? reply.result.content?.map(({ text }) => text ?? '').join('\n')),
  )
  for (const { uri, bytes } of reply.result.artifacts ?? []) out.line(`all ${bytes} bytes are kept: ${uri}`)
  return reply.result.is_error ? 1 : 0
}

/** `svc tool approve`. */
export async function runApprove({ args, options, client, out }: CommandContext): Promise<void> {
  const { approval = '' } = args
  const decision = options.reject === true ? 'reject' : 'allow'
  const url = `/api/tool-approvals/${encodeURIComponent(approval)}/decide`
  const body = { decision, ...(options.remember === undefined ? {} : { remember: String(options.remember) }) }
  const reply = (await client.request('POST', url, body)) as ApprovalReply
  if (out.json) return out.value(reply)
  out.line(decision === 'allow' ? `allowed ${approval}` : `rejected ${approval}`)
}

async function inputOf(context: CommandContext, option: string | undefined): Promise<unknown> {
  if (option === undefined) return {}
  const text =
    option === '-' ? await context.stdin() : option.startsWith('@') ? await context.readFile(option.slice(1)) : option
  try {
    return JSON.parse(text)
  } catch (error) {
    return context.fault('usage', `the input is not valid JSON: ${messageOf(error)}`, "give an object, such as '{}'")
  }
}
