import { type Installed, until } from '../../../e2e/installed.js'
import type { Chance } from '../../library/chance.js'
import type { Furnished } from '../world.js'

/** Milliseconds that anything has which the attack waits for. */
export const PATIENCE = 60_000

// biome-ignore lint/suspicious/noExplicitAny: replies of any shape
export type Json = any

export interface Answer {
  readonly status: number
  readonly text: string
  readonly code: string
}

/** The scene of one attack. */
export interface Scene extends Furnished {
  readonly at: Installed
  readonly random: Chance
  /** A webhook that takes deliveries, and how many it has taken. */
  webhook: Json
  sent: number
  /** By trigger. */
  readonly taken: Map<string, number>
  ask(method: string, url: string, body?: unknown): Promise<{ readonly status: number; readonly body: Json }>
}

/** Resolves with what broke. */
export type Strike = (scene: Scene) => Promise<string | undefined>

/** Makes a trigger on an event; its name is its own. */
export async function trigger({ ask, workspace, random }: Scene, body: object): Promise<Json> {
  const { status, body: reply } = await ask('POST', '/api/automation/triggers', {
    ...{ name: `t${random.int(1e9)}`, agent_name: 'scripted', scope: 'workspace', workspace_id: workspace },
    ...{ prompt: 'say taken', fire_limit: { max: 100_000, window: '1h' } },
    ...body,
  })
  if (status !== 201) throw new Error(`POST trigger: ${status} ${JSON.stringify(reply)}`)
  return reply.trigger
}

/** Prompts and waits for the end of the turn; `refused` has the code of one that did not begin. */
export async function prompt({ ask, workspace }: Scene, session: string, text: string) {
  const url = `/api/workspaces/${workspace}/sessions/${session}`
  const { status, body } = await ask('POST', `${url}/prompt`, { text })
  if (status >= 300) return { refused: body.code as string, turn: '' }
  const turn = body.prompt.new_turn_id as string
  await until(
    async () => {
      const { events } = (await ask('GET', `${url}/events?turn_id=${turn}&limit=1000`)).body
      return events.find(({ type }: Json) => type === 'done' || type === 'error')
    },
    PATIENCE,
    () => `turn ${turn} ends`,
  )
  return { refused: undefined, turn }
}
