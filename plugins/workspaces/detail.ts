import { iso, messageOf, type PluginKernel, within } from '../../kernel/plugin.js'
import type { WorkspaceDetail, Workspace as WorkspaceWire } from '../../schemas/workspaces.js'
import { type DetailMember, type Workspace, WorkspaceDetailMembers } from './api.js'

/** Milliseconds that a plugin has to give its member of a detail. */
const MEMBER_DEADLINE_MS = 5000

/** A workspace and what other plugins know of it; a member whose plugin is absent or fails is empty. */
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

/** A workspace as the API shows it. */
export function toWire(workspace: Workspace): WorkspaceWire {
  return {
    id: workspace.id,
    name: workspace.name,
    root_dir: workspace.rootDir,
    add_dirs: [...workspace.addDirs],
    default_agent: workspace.defaultAgent,
    sandbox_ref: workspace.sandboxRef,
    created_at: iso(workspace.createdAt),
    updated_at: iso(workspace.updatedAt),
  }
}
