import type { CommandContext } from '../../../kernel/plugin.js'
import type { ListModelSourcesReply, ModelSource } from '../../../schemas/providers.js'

/** `svc provider models refresh [provider]` */
export async function runRefresh(context: CommandContext): Promise<void> {
  const { client, options } = context
  const body = {
    ...(options.force === true && { force: true }),
    ...(options.source !== undefined && { source_id: options.source }),
  }
  show(context, (await client.request('POST', `${base(context)}/models/refresh`, body, { waits: false })) as never)
}

/** `svc provider models status [provider]` */
export async function runStatus(context: CommandContext): Promise<void> {
  const path = context.args.provider === undefined ? '/api/model-catalog/sources' : `${base(context)}/models`
  show(context, (await context.client.request('GET', `${path}/status`)) as never)
}

const base = ({ args: { provider } }: CommandContext) =>
  `/api/model-catalog${provider === undefined ? '' : `/providers/${encodeURIComponent(provider)}`}`

function show({ out }: CommandContext, reply: ListModelSourcesReply): void {
  if (out.json) {
    out.value(reply)
    return
  }
  if (reply.sources.length === 0) out.line('no sources; install an agent or set an endpoint: svc provider list')
  for (const source of reply.sources) out.line(lineOf(source))
}

function lineOf({ source_id: id, refresh_state: state, row_count: count, last_error: why }: ModelSource): string {
  const models = `${count} ${count === 1 ? 'model' : 'models'}`
  return why === undefined ? `${id}: ${state}, ${models}` : `${id}: ${state}, ${models} from the last refresh: ${why}`
}
