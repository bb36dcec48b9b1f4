import { methods, RequestError } from '@agentclientprotocol/sdk'
import * as v from 'valibot'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import { messageOf } from '../../../../kernel/plugin.js'
import { notPossible, refusalOf } from '../protocol/error.js'
import * as schemas from '../protocol/schemas.js'
import { type Clarifications, ElicitationParams } from './clarifications.js'
import { terminalAction } from './command-line.js'
import type { CallWatch, ClientCall } from './content.js'
import { readTextFile, textBefore, writeTextFile } from './files.js'
import { contains, locate, type PathLocation, PathRefused } from './paths.js'
import type { Permissions } from './permissions.js'
import type { Terminals } from './terminals.js'

/** What an ACP client takes handlers with, without the SDK, whose types the package does not bring. */
interface Handlers {
  onRequest<T, R>(
    method: string,
    decode: (params: unknown) => T,
    handle: (request: { readonly params: T; readonly signal: AbortSignal }) => Promise<R>,
  ): unknown
}

/** The client methods that an agent may call: files, terminals, permission. */
export class ClientMethods {
  constructor(
    private readonly permissions: Permissions,
    private readonly clarifications: Clarifications,
    private readonly terminals: Terminals,
    private readonly watch: CallWatch,
  ) {}

  /** Registers the methods on an ACP client. */
  register<App extends Handlers>(app: App): App {
    const { elicitation, fs, session, terminal } = methods.client
    const on = <T>(
      method: string,
      schema: v.GenericSchema<unknown, T>,
      handle: (params: T, signal: AbortSignal) => Promise<unknown>,
    ) =>
      app.onRequest<T, unknown>(
        method,
        params => decode(schema, params),
        async ({ params, signal }) => {
          try {
            return (await handle(params, signal)) ?? {}
          } catch (error) {
            if (error instanceof RequestError) throw error
            const refusal = refusalOf(error)
            throw new RequestError(refusal.code, refusal.message, refusal.data)
          }
        },
      )
    on(session.requestPermission, schemas.PermissionParams, (params, signal) =>
      this.permissions.request(params, signal),
    )
    on(elicitation.create, ElicitationParams, (params, signal) => this.clarifications.ask(params, signal))
    on(fs.readTextFile, schemas.ReadFileParams, (params, signal) => this.#read(params, signal))
    on(fs.writeTextFile, schemas.WriteFileParams, (params, signal) => this.#write(params, signal))
    on(terminal.create, schemas.CreateTerminalParams, (params, signal) => this.#createTerminal(params, signal))
    on(terminal.output, schemas.TerminalParams, async ({ terminalId }) => this.terminals.output(terminalId))
    on(terminal.waitForExit, schemas.TerminalParams, ({ terminalId }) => this.terminals.waitForExit(terminalId))
    on(terminal.kill, schemas.TerminalParams, async ({ terminalId }) => this.terminals.kill(terminalId))
    on(terminal.release, schemas.TerminalParams, ({ terminalId }) => this.terminals.release(terminalId))
    return app
  }

  async #read({ path, line, limit }: v.InferOutput<typeof schemas.ReadFileParams>, signal: AbortSignal) {
    const location = await locate(this.permissions.territory, path, 'daemon-reads')
    return this.#watched({ kind: 'read', title: location.path }, async () => {
      const action = { kind: 'read', title: `read ${location.path}`, paths: [location.path], diffs: [] }
      await this.permissions.allow({ action, location, isGranted: grants => grants.useForRead(location.path) }, signal)
      return { content: await readTextFile(location.path, line, limit) }
    })
  }

  async #write({ path, content }: v.InferOutput<typeof schemas.WriteFileParams>, signal: AbortSignal): Promise<void> {
    const { territory } = this.permissions
    const location = await locate(territory, path, 'daemon-writes')
    const target = location.path
    if (territory.readOnly?.some(guarded => contains(guarded, target))) {
      throw new PathRefused(`${path} would run code outside of the sandbox; inside it is read-only`)
    }
    await this.#watched({ kind: 'edit', title: target }, () => this.#writeAt({ path, content }, location, signal))
  }

  async #writeAt(
    { path, content }: v.InferOutput<typeof schemas.WriteFileParams>,
    location: PathLocation,
    signal: AbortSignal,
  ): Promise<void> {
    const target = location.path
    const action = { kind: 'edit', title: `write ${target}`, paths: [target], diffs: [] }
    let shown: { readonly before: string | undefined } | undefined
    const readBefore = async () => {
      shown = { before: await textBefore(target) }
      return shown.before
    }
    // Permission is given for a change of the current text, so exactly that change must be made.
    await this.permissions.allow(
      {
        action,
        location,
        named: path,
        readBefore,
        detail: before => ({
          ...action,
          diffs: [{ path: target, newText: content, ...(before !== undefined && { oldText: before }) }],
        }),
        isGranted: (grants, before) => grants.useForWrite({ target, content, before }),
      },
      signal,
    )
    await writeTextFile(target, content, shown)
  }

  async #createTerminal(params: schemas.CreateTerminalParams, signal: AbortSignal) {
    const location = await locate(this.permissions.territory, params.cwd ?? '.')
    const requestedArgv = [params.command, ...(params.args ?? [])]
    const chosen = (params.env ?? []).length > 0 ? { setsEnvironment: true as const } : {}
    const call = await this.watch.before({
      kind: 'execute',
      title: requestedArgv.join(' '),
      argv: requestedArgv,
      ...chosen,
    })
    const { argv = requestedArgv } = call
    try {
      const terminalId = await this.#runCommand(params, location, requestedArgv, argv, signal)
      // The call ends with its command; a command that is released or ends with the session has no exit code.
      void this.terminals.waitForExit(terminalId).then(
        ({ exitCode }) => this.watch.after(call, exitCode === 0 ? undefined : endOf(exitCode)),
        error => this.watch.after(call, messageOf(error)),
      )
      return { terminalId }
    } catch (error) {
      this.watch.after(call, messageOf(error))
      throw error
    }
  }

  async #runCommand(
    params: v.InferOutput<typeof schemas.CreateTerminalParams>,
    location: PathLocation,
    requestedArgv: readonly string[],
    argv: readonly string[],
    signal: AbortSignal,
  ): Promise<string> {
    const { territory } = this.permissions
    const action = terminalAction(
      argv,
      params.env ?? [],
      location.path === territory.roots[0] ? undefined : location.path,
    )
    await this.permissions.allow(
      { action, location, isGranted: grants => grants.useForCommand(argv, territory.roots[0]) },
      signal,
    )
    const [command = '', ...args] = argv
    // An unchanged command runs as the agent wrote it, because it may be a shell command line.
    const wanted = argv === requestedArgv ? params : { ...params, command, args }
    return this.terminals.create(wanted, location.path)
  }

  /** Runs a call between the two hooks. */
  async #watched<T>(call: ClientCall, run: () => Promise<T>): Promise<T> {
    await this.watch.before(call)
    try {
      const done = await run()
      this.watch.after(call)
      return done
    } catch (error) {
      this.watch.after(call, messageOf(error))
      throw error
    }
  }
}

const endOf = (exitCode: number | null | undefined): string =>
  typeof exitCode === 'number' ? `exit code ${exitCode}` : 'ended by a signal'

function decode<T>(schema: v.GenericSchema<unknown, T>, params: unknown): T {
  const result = v.safeParse(schema, params ?? {})
  if (result.success) return result.output
  const [issue] = result.issues
  const at = issue.path?.map(({ key }) => String(key)).join('.')
  throw notPossible('invalid_params', `${at ? `${at}: ` : ''}${issueText(issue)}`)
}
