import { messageOf, type PluginKernel, within } from '../../../kernel/plugin.js'
import { type WorkspaceDetail, Workspace as WorkspaceWire } from '../../../schemas/workspaces.js'
import { type DetailMember, type Workspace, WorkspaceDetailMembers } from './api.js'
import { workspaces } from './table.js'

/** Milliseconds before a plugin's member times out. */
const MEMBER_DEADLINE_MS = 5000

/** A workspace with members from other plugins; a member is empty if its plugin is absent or fails. */
export async function detailOf(
  kernel: Pick<PluginKernel, 'clock' | 'collect' | 'log'>,
  workspace: Workspace,
): Promise<WorkspaceDetail> {
  const detail: Record<DetailMember['member'], unknown[]> = { agents: [], providers: [], sessions: [], skills: [] }
  await Promise.all(
    kernel.collect(WorkspaceDetailMembers).map(async ({ owner, entry: { member, read } }) => {
      try {
        const work = (async () => read(workspace))()
        detail[member] = [...(await within(kernel.clock, MEMBER_DEADLINE_MS, work))]
      } catch (error) {
        kernel.log.warn(`${owner} did not give the ${member} of workspace ${workspace.name}: ${messageOf(error)}`)
      }
    }),
  )
  return { workspace: toWire(workspace), ...(detail as Omit<WorkspaceDetail, 'workspace'>) }
}

/** A workspace in the form of the API. */
export const toWire = (workspace: Workspace): WorkspaceWire => workspaces.wire(workspace, WorkspaceWire)
