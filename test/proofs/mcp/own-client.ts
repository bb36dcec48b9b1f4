import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { commandOf, type RealAgent } from '../../real/agents.js'
import { calling, type Model } from './model.js'
import { type Step, SVC, type Wire, type World } from './world.js'

/** An agent that a person runs without the daemon, by the protocol that editors speak to it. */
class Editor {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, { resolve(result: Wire): void; reject(error: Error): void }>()
  #next = 0

  constructor(command: string, cwd: string, env: Readonly<Record<string, string>>) {
    const [program = '', ...args] = command.split(' ')
    this.#child = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'ignore'], detached: true })
    createInterface({ input: this.#child.stdout! }).on('line', line => this.#take(JSON.parse(line)))
    this.#child.on('close', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the agent has ended'))
    })
  }

  request(method: string, params: object): Promise<Wire> {
    const id = this.#next++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#send({ id, method, params })
    })
  }

  close(): void {
    if (this.#child.pid !== undefined && this.#child.exitCode === null) process.kill(-this.#child.pid, 'SIGKILL')
  }

  #take({ id, method, params, result, error }: Wire): void {
    if (method === undefined) {
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      if (error) waiting?.reject(new Error(JSON.stringify(error)))
      else waiting?.resolve(result)
    } else if (method === 'session/request_permission') {
      // The person says yes to whatever is asked.
      const { optionId } = params.options.find(({ kind }: Wire) => kind.startsWith('allow')) ?? params.options[0]
      this.#send({ id, result: { outcome: { outcome: 'selected', optionId } } })
    } else if (id !== undefined) this.#send({ id, error: { code: -32601, message: `no ${method} here` } })
  }

  #send(message: object): void {
    this.#child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }
}

/** How an agent is told of an MCP server in its own configuration. */
export const configure: Readonly<Record<string, (home: string, command: readonly string[], env: object) => void>> = {
  claude(home, [command, ...args], env) {
    const servers = { mine: { type: 'stdio', command, args, env } }
    fs.writeFileSync(path.join(home, '.claude.json'), JSON.stringify({ mcpServers: servers }))
  },
  codex(home, [command, ...args], env) {
    const variables = Object.entries(env).map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
    const lines = [
      '[mcp_servers.mine]',
      `command = ${JSON.stringify(command)}`,
      `args = ${JSON.stringify(args)}`,
      '[mcp_servers.mine.env]',
      ...variables,
      '',
    ]
    fs.appendFileSync(path.join(home, '.codex/config.toml'), lines.join('\n'))
  },
}

/** A real agent with an MCP configuration of its own, as a client of the running daemon. */
export function ownClientSteps(
  world: World,
  model: Model,
  name: string,
  real: RealAgent,
  root: string,
): readonly Step[] {
  return [
    {
      what: `${name}, run without the daemon and with svc mcp serve in its own configuration, calls a tool of the daemon`,
      async run() {
        const home = path.join(world.folder, `own-${name}`)
        fs.mkdirSync(home)
        const command = commandOf(real, { root, home, base: model.base })
        const { PATH = '', SVC_HOME = '' } = world.env
        configure[name]?.(home, [process.execPath, SVC, 'mcp', 'serve'], { SVC_HOME })
        const editor = new Editor(command, home, { PATH, HOME: home })
        try {
          const { workspace } = await world.ask('POST', '/api/workspaces/resolve', { path: home })
          await editor.request('initialize', { protocolVersion: 1, clientCapabilities: {} })
          const { sessionId } = await editor.request('session/new', { cwd: home, mcpServers: [] })
          // Its servers start beside its session: the first requests may come before their tools are there.
          const result = await world.until('the answer of the tool', async () => {
            const before = (await model.results()).length
            const text = calling('service__workspace_list$', {})
            await editor.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
            return (await model.results())[before]
          })
          assert.match(result, new RegExp(workspace.id), result)
          return `the answer names ${workspace.id}`
        } finally {
          editor.close()
        }
      },
    },
  ]
}
