import type { Awaitable } from '../../../kernel/plugin.js'
import type { HookPayload } from '../api.js'
import type { DeclaredHook } from '../declared.js'
import { askExtension, type ExtensionKernel } from './extension.js'
import type { LaunchKernel } from './launch.js'
import { runSpawned } from './spawned.js'
import { WarmPrograms } from './warm-programs.js'

export type ExecutorsKernel = LaunchKernel & ExtensionKernel

/** Runs hooks by whatever their declarations name. */
export class Executors {
  readonly #programs: WarmPrograms

  constructor(private readonly kernel: ExecutorsKernel) {
    this.#programs = new WarmPrograms(kernel)
  }

  /** The answer of a hook; rejects with what is wrong with who gives it. */
  execute(hook: DeclaredHook, payload: HookPayload, signal: AbortSignal): Awaitable<unknown> {
    const { executor } = hook
    if (executor.kind === 'native') return executor.run(payload)
    if (executor.kind === 'extension') return askExtension(this.kernel, hook, executor.key, payload)
    if (!executor.warm) return runSpawned(this.kernel, hook, executor, payload, signal)
    return this.#programs.ask(hook, executor, payload, signal)
  }

  /** Ends the programs that stay, of hooks that are not among these. */
  keep(hooks: readonly DeclaredHook[]): void {
    this.#programs.keep(hooks)
  }

  close(): Promise<void> {
    return this.#programs.close()
  }
}
