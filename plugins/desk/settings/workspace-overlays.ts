import path from 'node:path'
import type { Fault } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../daemon/api.js'
import type { Workspace } from '../workspaces/api.js'
import { SettingsErrors } from './errors.js'
import type { K } from './needs.js'
import type { Targets } from './targets.js'

/** Detects invalid configuration files of workspaces: no session may start without the settings written for it. */
export class WorkspaceOverlays {
  constructor(
    private readonly kernel: K,
    private readonly targets: Pick<Targets, 'overlayOf'>,
  ) {}

  /** Why no session may start in a workspace. Files of an untrusted workspace have no effect, so their mistakes are ignored. */
  async refusal(workspaceId: string): Promise<Fault | undefined> {
    const workspace = this.kernel.needs.workspaces.get(workspaceId)
    const problem = workspace && (await this.#problem(workspace))
    if (!problem) return undefined
    return SettingsErrors.workspace_config_invalid(problem, { next: nextStep(workspace, problem) })
  }

  /** Doctor items for all workspaces with an invalid configuration. */
  async check(): Promise<DiagnosticItem[]> {
    const items: DiagnosticItem[] = []
    for (const workspace of this.kernel.needs.workspaces.list()) {
      const problem = await this.#problem(workspace)
      if (problem === undefined) continue
      items.push(
        finding({
          id: `config:${workspace.id}`,
          code: 'workspace_config_invalid',
          category: 'config',
          severity: 'error',
          title: `No session starts in workspace ${workspace.name}`,
          message: problem,
          suggested_command: nextStep(workspace, problem),
        }),
      )
    }
    return items
  }

  async #problem(workspace: Workspace): Promise<string | undefined> {
    const { configuration } = this.kernel.needs
    const overlay = await this.targets.overlayOf(workspace)
    if (overlay === undefined || configuration.state(overlay).problem === undefined) return undefined
    // The file may have been corrected since it was last read.
    await configuration.reload()
    return configuration.state(overlay).problem
  }
}

const nextStep = ({ rootDir }: Workspace, problem: string) => {
  const [, line] = /^[^\n]*?:(\d+)/.exec(problem) ?? []
  return `edit ${path.join(rootDir, '.svc', 'config.json')}${line === undefined ? '' : `, line ${line}`}`
}
