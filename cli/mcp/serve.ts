import { findAddress } from '../address.js'
import { CliFault } from '../fault.js'
import type { LocalContext } from '../local.js'
import { relay } from './relay.js'

const RISKS = ['read', 'mutating', 'open_world', 'destructive']

/** `svc mcp serve`: from here on the client uses standard input and output. */
export async function serveMcp({ io, options, lists }: LocalContext): Promise<undefined> {
  const risks = options.all ? RISKS : ['read', ...(lists.risk ?? [])]
  const wrong = risks.find(risk => !RISKS.includes(risk))
  if (wrong !== undefined) throw new CliFault('usage', `--risk ${wrong}: one of ${RISKS.join(', ')}`, { exit: 2 })
  const { socket } = await findAddress(io.env)
  const open = {
    risks: [...new Set(risks)],
    ...(options.workspace !== undefined && { workspace_id: options.workspace }),
  }
  process.stdout.on('error', () => process.exit(0))
  await relay({ socket, input: process.stdin, output: process.stdout, open }).catch(error => {
    throw new CliFault('mcp_serve_failed', error.message, { exit: 3, next: 'svc daemon start', cause: error })
  })
  return undefined
}
