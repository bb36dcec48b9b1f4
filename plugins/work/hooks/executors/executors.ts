import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { Awaitable } from '../../../../kernel/plugin.js'
import type { HookPayload } from '../api.js'
import type { DeclaredHook } from '../declared.js'
import type { K } from '../needs.js'
import type { Cutoff } from './cutoff.js'
import { askExtension } from './extension.js'
import { runSpawned } from './spawned.js'
import { WarmPrograms } from './warm-programs.js'

/** Runs hooks with the executor of their declaration. */
export class Executors {
  readonly #programs: WarmPrograms

  constructor(private readonly kernel: K) {
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
      `the .svc folder of the workspace is not trusted or has changed: ${command('workspace trust', workspaceId)}`,
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
