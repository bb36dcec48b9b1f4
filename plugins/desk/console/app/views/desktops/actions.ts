import { announce } from '../../core/announce.js'
import { ApiFault, api, faultText, type ReplyOf } from '../../core/api.js'
import { text } from '../../text.js'

export type State = ReplyOf<'GET /api/workspaces/{workspace_id}/window-manager'>
export type Desktop = State['desktops'][number]
export type Arrangement = 'columns' | 'rows' | 'grid' | 'main' | 'stack'
type Reply = ReplyOf<'POST /api/workspaces/{workspace_id}/window-manager/commands'>

type CommandName =
  | `desktop.${'create' | 'delete' | 'update'}`
  | `window.${'open' | 'close' | 'focus' | 'move' | 'swap' | 'toggle_floating' | 'zoom'}`
  | `layout.${'arrange' | 'resize' | 'balance' | 'undo' | 'redo' | 'replace'}`

export interface Actions {
  /** Sends a command and throws errors. */
  send(command: CommandName, payload: Readonly<Record<string, unknown>>): Promise<Reply>
  /** Sends a command and shows errors. @param said the announcement; default: that of the command */
  run(command: CommandName, payload: Readonly<Record<string, unknown>>, said?: string): Promise<void>
}

/** Commands of the window manager, applied to the displayed state. */
export function actionsOf(
  workspace: string,
  state: State,
  keep: (state: State) => void,
  show: (error: unknown) => void,
): Actions {
  const at = { path: { workspace_id: workspace } }
  const post = (revision: number, command: CommandName, payload: Readonly<Record<string, unknown>>) =>
    api('POST /api/workspaces/{workspace_id}/window-manager/commands', {
      ...at,
      body: { expected_revision: revision, command_id: command, payload },
    })
  const send = async (command: CommandName, payload: Readonly<Record<string, unknown>>) => {
    let reply: Reply
    try {
      reply = await post(state.revision, command, payload)
    } catch (error) {
      if (!(error instanceof ApiFault && error.code === 'window_manager_revision_conflict')) throw error
      // Another browser has changed the state. The command refers to windows by id, so it is sent once more with the current
      // revision.
      const now = await api('GET /api/workspaces/{workspace_id}/window-manager', at)
      reply = await post(now.revision, command, payload)
    }
    keep(reply.snapshot)
    return reply
  }
  return {
    send,
    async run(command, payload, said = text.desktops.done[command] ?? '') {
      show(undefined)
      try {
        await send(command, payload)
        announce(said)
      } catch (error) {
        show(error)
        announce(faultText(error))
      }
    },
  }
}
