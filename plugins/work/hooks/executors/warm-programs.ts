import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import type { HookPayload } from '../api.js'
import type { DeclaredHook } from '../declared.js'
import type { K } from '../needs.js'
import type { Cutoff } from './cutoff.js'
import type { Program } from './launch.js'
import { WarmProgram } from './warm.js'

/** The warm programs, one per declaration that has run. */
export class WarmPrograms {
  readonly #programs = new Map<string, WarmProgram>()

  constructor(private readonly kernel: K) {}

  ask(hook: DeclaredHook, program: Program, payload: HookPayload, cutoff: Cutoff): Promise<unknown> {
    const key = keyOf(hook)
    let running = this.#programs.get(key)
    if (!running) {
      running = new WarmProgram(this.kernel, hook, program)
      this.#programs.set(key, running)
    }
    return running.ask(payload, cutoff)
  }

  /** Stops the programs of all other hooks. */
  keep(hooks: readonly DeclaredHook[]): void {
    const used = new Set(hooks.map(keyOf))
    void this.#end(key => used.has(key))
  }

  close(): Promise<void> {
    return this.#end(() => false)
  }

  async #end(stays: (key: string) => boolean): Promise<void> {
    const gone = [...this.#programs].filter(([key]) => !stays(key))
    for (const [key] of gone) this.#programs.delete(key)
    await Promise.all(gone.map(([, program]) => program.close()))
  }
}

/** Equal for declarations that can share a program. */
const keyOf = ({ name, event, source, owner, workspaceId, executor }: DeclaredHook) =>
  canonicalJson({ name, event, source, owner, workspaceId: workspaceId ?? '', ...executor, run: '' })
