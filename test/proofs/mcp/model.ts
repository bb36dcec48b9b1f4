import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const SCRIPT = fileURLToPath(new URL('../../real/fake-model.mjs', import.meta.url))

/** The model of real agents: prompts say what it does. */
export class Model {
  private constructor(
    readonly base: string,
    private readonly child: ChildProcess,
  ) {}

  static async start(): Promise<Model> {
    const child = spawn(process.execPath, [SCRIPT, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = await once(child.stdout, 'data')
    return new Model(/http:\/\/\S+/.exec(String(line))?.[0] ?? '', child)
  }

  stop(): void {
    this.child.kill()
  }

  /** Results of tools that it was told, the newest last; of a long one the beginning. */
  async results(): Promise<readonly string[]> {
    const log = (await (await fetch(`${this.base}/__log`)).json()) as { result?: string }[]
    return log.flatMap(({ result }) => (result === undefined ? [] : [result]))
  }

  /** Bytes of what the newest request that offers tools tells of those of the daemon, and their number. */
  async offered(pattern: RegExp): Promise<{ readonly tools: number; readonly bytes: number }> {
    const bodies = (await (await fetch(`${this.base}/__bodies`)).json()) as string[]
    for (const body of bodies.toReversed()) {
      const { tools = [] } = JSON.parse(body) as { tools?: { name?: string; tools?: unknown[] }[] }
      const ours = tools.filter(({ name = '' }) => pattern.test(name))
      // Some agents group the tools of a server.
      const count = ours.reduce((sum, { tools: group }) => sum + (group?.length ?? 1), 0)
      if (count > 0) return { tools: count, bytes: Buffer.byteLength(JSON.stringify(ours)) }
    }
    return { tools: 0, bytes: 0 }
  }
}

/** A prompt that has the model call one tool and then end its turn. */
export const calling = (tool: string, input: object): string =>
  `[[forget]][[tool:${tool} ${JSON.stringify(input)}]][[say:done]]`
