import type { Awaitable, MaybeToken, PluginKernel } from '../../../../kernel/plugin.js'
import type { ConfinementApi } from '../../../access/sandboxes/api.js'
import type { Agents } from '../../../agents/agents/api.js'
import type { ExtensionsApi } from '../../../delivery/extensions/api.js'
import type { Workspaces } from '../../../desk/workspaces/api.js'
import type { Processes } from '../../../platform/processes/api.js'
import type { HookPayload } from '../api.js'
import type { DeclaredHook } from '../declared.js'
import type { Cutoff } from './cutoff.js'
import { askExtension } from './extension.js'
import { runSpawned } from './spawned.js'
import { WarmPrograms } from './warm-programs.js'

export type ExecutorNeeds = {
  readonly agents: typeof Agents
  readonly processes: typeof Processes
  readonly workspaces: typeof Workspaces
  readonly extensions: MaybeToken<ExtensionsApi>
  readonly sandboxes: MaybeToken<ConfinementApi>
}

/** Runs hooks with the executor of their declaration. */
export class Executors {
  readonly #programs: WarmPrograms

  constructor(private readonly kernel: PluginKernel<ExecutorNeeds>) {
    this.#programs = new WarmPrograms(kernel)
  }

  /** Runs a hook and returns its answer; rejects when it fails. */
  execute(hook: DeclaredHook, payload: HookPayload, cutoff: Cutoff): Awaitable<unknown> {
    const { executor } = hook
    if (executor.kind === 'native') return executor.run(payload)
    if (executor.kind === 'extension') return askExtension(this.kernel, hook, executor.key, payload)
    const run = () =>
      executor.warm
        ? this.#programs.ask(hook, executor, payload, cutoff)
        : runSpawned(this.kernel, hook, executor, payload, cutoff)
    return hook.isOfFiles ? this.#trusted(hook).then(run) : run()
  }

  /** Trust was checked when the hook was read, but the agent may have changed the program since. */
  async #trusted({ workspaceId = '' }: DeclaredHook): Promise<void> {
    const { workspaces, agents } = this.kernel.needs
    const workspace = workspaces.get(workspaceId)
    if (workspace && (await agents.mayRunFilesOf(workspace))) return
    throw new Error(
      `the .svc folder of the workspace is not trusted or has changed: svc workspace trust ${workspaceId}`,
    )
  }

  /** Stops the warm programs of all other hooks. */
  keep(hooks: readonly DeclaredHook[]): void {
    this.#programs.keep(hooks)
  }

  close(): Promise<void> {
    return this.#programs.close()
  }
}
