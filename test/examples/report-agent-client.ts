import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import {
  type ClientCapabilities,
  type ClientContext,
  client,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type PromptRequest,
  type ReadTextFileRequest,
  RequestError,
  type RequestPermissionRequest,
  type SessionUpdate,
  type WriteTextFileRequest,
} from '@agentclientprotocol/sdk'
import { suite, type Test } from 'uvu'
import { typescript } from '../harness/run-typescript.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const GIT_ENVIRONMENT = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_DEFAULT_HASH: 'sha1' }

export type Answer = 'allow-once' | 'allow-always' | 'reject-once' | 'reject-always' | 'cancelled'

/** How a client behaves; without a member it grants everything at once. */
export interface Behaviour {
  capabilities?: ClientCapabilities
  answer?(request: RequestPermissionRequest): Answer | Promise<Answer>
  /** Runs before a file is read. */
  beforeRead?(request: ReadTextFileRequest): Promise<void>
  /** Refuses a write by throwing. */
  beforeWrite?(request: WriteTextFileRequest): void
  /** What a terminal runs instead of the command. */
  replaceCommand?: readonly string[]
}

export const EVERYTHING: ClientCapabilities = { fs: { readTextFile: true, writeTextFile: true }, terminal: true }

/** A real client: the agent as a child process, files and terminals of this machine. */
export class AgentProcess {
  /** What reached the client, in order: `permission execute`, `terminal/create`, `fs/write_text_file`, `update plan`… */
  readonly log: string[] = []
  readonly asked: RequestPermissionRequest[] = []
  readonly updates: { sessionId: string; update: SessionUpdate }[] = []
  readonly terminals = new Map<string, { child: ChildProcess; output: string; exit: Promise<number | null> }>()
  readonly exit: Promise<number | null>
  loadSession = false

  private constructor(
    readonly child: ChildProcess,
    readonly agent: ClientContext,
  ) {
    this.exit = once(child, 'exit').then(([code]) => code as number | null)
  }

  static async start(home: string, behaviour: Behaviour = {}): Promise<AgentProcess> {
    const child = spawn(process.execPath, [...typescript, join(ROOT, 'examples/agents/report/agent.ts')], {
      cwd: ROOT,
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env.PATH, HOME: home, XDG_STATE_HOME: join(home, 'state') },
    })
    // The handlers run only after a request of ours, so the process they speak of is there by then.
    const self = (): AgentProcess => running
    const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>)
    const connection = client({ name: 'test-client' })
      .onNotification(methods.client.session.update, ({ params }) => self().#updated(params))
      .onRequest(methods.client.session.requestPermission, async ({ params }) => {
        self().asked.push(params)
        self().log.push(`permission ${params.toolCall.kind}`)
        const answer = (await behaviour.answer?.(params)) ?? 'allow-once'
        return { outcome: answer === 'cancelled' ? { outcome: answer } : { outcome: 'selected', optionId: answer } }
      })
      .onRequest(methods.client.fs.readTextFile, async ({ params }) => {
        self().log.push('fs/read_text_file')
        await behaviour.beforeRead?.(params)
        return { content: readFileSync(params.path, 'utf8') }
      })
      .onRequest(methods.client.fs.writeTextFile, ({ params }) => {
        self().log.push('fs/write_text_file')
        behaviour.beforeWrite?.(params)
        mkdirSync(dirname(params.path), { recursive: true })
        writeFileSync(params.path, params.content)
        return {}
      })
      .onRequest(methods.client.terminal.create, ({ params }) => {
        const [command, ...args] = behaviour.replaceCommand ?? [params.command, ...(params.args ?? [])]
        return { terminalId: self().#openTerminal(command!, args, params.cwd!) }
      })
      .onRequest(methods.client.terminal.waitForExit, async ({ params }) => {
        self().log.push('terminal/wait_for_exit')
        return { exitCode: await self().terminals.get(params.terminalId)!.exit }
      })
      .onRequest(methods.client.terminal.output, ({ params }) => {
        self().log.push('terminal/output')
        return { output: self().terminals.get(params.terminalId)!.output, truncated: false }
      })
      .onRequest(methods.client.terminal.release, ({ params }) => {
        self().log.push('terminal/release')
        self().terminals.get(params.terminalId)!.child.kill('SIGKILL')
        return {}
      })
      .connect(stream)
    const running = new AgentProcess(child, connection.agent)
    const { protocolVersion, agentCapabilities } = await connection.agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: behaviour.capabilities ?? EVERYTHING,
    })
    if (protocolVersion !== PROTOCOL_VERSION) throw new Error(`unexpected protocol version ${protocolVersion}`)
    running.loadSession = agentCapabilities?.loadSession === true
    return running
  }

  async open(cwd: string): Promise<string> {
    const { sessionId } = await this.agent.request(methods.agent.session.new, { cwd, mcpServers: [] })
    return sessionId
  }

  async prompt(sessionId: string, text = 'Report on this workspace.'): Promise<string> {
    const params: PromptRequest = { sessionId, prompt: [{ type: 'text', text }] }
    const { stopReason } = await this.agent.request(methods.agent.session.prompt, params)
    return stopReason
  }

  cancel(sessionId: string): Promise<void> {
    return this.agent.notify(methods.agent.session.cancel, { sessionId })
  }

  /** The agent's text so far, the chunks joined as a client would. */
  said(sessionId: string): string {
    return this.#of(sessionId)
      .map(update =>
        update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text' ? update.content.text : '',
      )
      .join('')
  }

  /** Every tool call with the statuses it went through: `List files: pending in_progress completed`. */
  toolCalls(sessionId: string): string[] {
    const calls = new Map<string, string>()
    for (const update of this.#of(sessionId)) {
      if (update.sessionUpdate === 'tool_call') calls.set(update.toolCallId, `${update.title}: ${update.status}`)
      if (update.sessionUpdate !== 'tool_call_update') continue
      calls.set(update.toolCallId, `${calls.get(update.toolCallId) ?? 'unknown call'} ${update.status}`)
    }
    return [...calls.values()]
  }

  /** Ends stdin, as a client does that goes away; answers with the exit code. */
  async end(): Promise<number | null> {
    this.child.stdin!.end()
    return this.exit
  }

  kill(): void {
    this.child.kill('SIGKILL')
    for (const { child } of this.terminals.values()) child.kill('SIGKILL')
  }

  #of(sessionId: string): SessionUpdate[] {
    return this.updates.filter(entry => entry.sessionId === sessionId).map(entry => entry.update)
  }

  #updated({ sessionId, update }: { sessionId: string; update: SessionUpdate }): void {
    this.updates.push({ sessionId, update })
    this.log.push(`update ${update.sessionUpdate}`)
  }

  #openTerminal(command: string, args: readonly string[], cwd: string): string {
    const child = spawn(command, args, {
      cwd,
      env: { PATH: process.env.PATH, ...GIT_ENVIRONMENT },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const terminal = { child, output: '', exit: once(child, 'close').then(([code]) => code as number | null) }
    for (const output of [child.stdout, child.stderr]) {
      output.setEncoding('utf8').on('data', (chunk: string) => {
        terminal.output += chunk
      })
    }
    const id = `terminal-${this.terminals.size}`
    this.terminals.set(id, terminal)
    this.log.push('terminal/create')
    return id
  }
}

/** Refuses like a client whose mode lets an agent read only. */
export function refuseWrite(): never {
  throw new RequestError(-32000, 'Write refused: mode approve-reads', { code: 'permission_required' })
}

/** A directory with `home` and workspaces below it; `remove` takes all of it away. */
export function makeScratch(): {
  home: string
  workspace(name: string, files: Record<string, string>): string
  remove(): void
} {
  const root = mkdtempSync(join(tmpdir(), 'report-agent-'))
  const home = join(root, 'home')
  mkdirSync(home)
  return {
    home,
    workspace(name, files) {
      const directory = join(root, name)
      // An empty repository: the agent asks git, which fails.
      mkdirSync(join(directory, '.git'), { recursive: true })
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(join(directory, path)), { recursive: true })
        writeFileSync(join(directory, path), content)
      }
      return directory
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** Commits everything as one commit whose hash depends on nothing but the content. */
export function commit(directory: string, subject: string, day: string): void {
  const date = `${day}T12:00:00+00:00`
  const env = { PATH: process.env.PATH, ...GIT_ENVIRONMENT, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date }
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: directory, env, stdio: ['ignore', 'ignore', 'inherit'] })
  git('init', '--quiet')
  git('add', '--all')
  git('-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', 'commit', '--quiet', '-m', subject)
}

/** What a test of the agent gets: a scratch directory, and agents that are gone with the test. */
export interface AgentTest {
  scratch: ReturnType<typeof makeScratch>
  started: AgentProcess[]
  start(behaviour?: Behaviour): Promise<AgentProcess>
}

export function agentSuite(name: string): Test<AgentTest> {
  const test = suite<AgentTest>(name)
  test.before.each(context => {
    context.scratch = makeScratch()
    context.started = []
    context.start = async behaviour => {
      const agent = await AgentProcess.start(context.scratch.home, behaviour)
      context.started.push(agent)
      return agent
    }
  })
  test.after.each(async ({ scratch, started }) => {
    for (const agent of started) agent.kill()
    await Promise.all(started.map(agent => agent.exit))
    scratch.remove()
  })
  return test
}

/** A promise and the function that settles it: holds a handler of the client until the test lets it go. */
export function gate(): { opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return { opened, open }
}

/** One file with one note, and where the report on it goes. */
export const SMALL = { 'a.ts': 'const a = 1 // TODO one\n' }
export const REPORT = 'svc-reports/report.md'
