import { type ClientApp, methods, RequestError } from '@agentclientprotocol/sdk'
import * as v from 'valibot'
import { issueText } from '../../../kernel/plugin.js'
import { notPossible, refusalOf } from '../acp/error.js'
import * as schemas from '../acp/schemas.js'
import type { ClientCall } from '../points.js'
import { type Clarifications, ElicitationParams } from './clarifications.js'
import { readTextFile, writeTextFile } from './files.js'
import { contains, PathRefused, resolveInside, type Territory } from './paths.js'
import type { Permissions } from './permissions.js'
import type { Terminals } from './terminals.js'

/** The client methods that an agent may call: files, terminals, permission. */
export class ClientMethods {
  constructor(
    private readonly territory: Territory,
    private readonly permissions: Permissions,
    private readonly clarifications: Clarifications,
    private readonly terminals: Terminals,
    /** Others may refuse a call, and change the command of one. Throws an error of the protocol. */
    private readonly before: (call: ClientCall) => Promise<ClientCall>,
  ) {}

  /** Puts the methods on an ACP client. */
  register(app: ClientApp): ClientApp {
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
    on(elicitation.create, ElicitationParams, params => this.clarifications.ask(params))
    on(fs.readTextFile, schemas.ReadFileParams, params => this.#read(params))
    on(fs.writeTextFile, schemas.WriteFileParams, params => this.#write(params))
    on(terminal.create, schemas.CreateTerminalParams, params => this.#createTerminal(params))
    on(terminal.output, schemas.TerminalParams, async ({ terminalId }) => this.terminals.output(terminalId))
    on(terminal.waitForExit, schemas.TerminalParams, ({ terminalId }) => this.terminals.waitForExit(terminalId))
    on(terminal.kill, schemas.TerminalParams, async ({ terminalId }) => this.terminals.kill(terminalId))
    on(terminal.release, schemas.TerminalParams, ({ terminalId }) => this.terminals.release(terminalId))
    return app
  }

  async #read({ path, line, limit }: v.InferOutput<typeof schemas.ReadFileParams>) {
    this.permissions.checkRead()
    const canonical = await resolveInside(this.territory, path)
    await this.before({ kind: 'read', title: canonical })
    return { content: await readTextFile(canonical, line, limit) }
  }

  async #write({ path, content }: v.InferOutput<typeof schemas.WriteFileParams>): Promise<void> {
    const canonical = await resolveInside(this.territory, path)
    if (this.territory.readOnly?.some(place => contains(place, canonical))) {
      throw new PathRefused(`${path} would run code outside of the sandbox; inside it is read-only`)
    }
    await this.before({ kind: 'edit', title: canonical })
    await this.permissions.checkWrite(canonical)
    await writeTextFile(canonical, content)
  }

  async #createTerminal(params: schemas.CreateTerminalParams) {
    const cwd = await resolveInside(this.territory, params.cwd ?? '.')
    const asked = [params.command, ...(params.args ?? [])]
    const { argv = asked } = await this.before({ kind: 'execute', title: asked.join(' '), argv: asked })
    await this.permissions.checkCommand(argv)
    const [command = '', ...args] = argv
    // What nobody changed is run as the agent wrote it, which may be a line for a shell.
    const wanted = argv === asked ? params : { ...params, command, args }
    return { terminalId: await this.terminals.create(wanted, cwd) }
  }
}

function decode<T>(schema: v.GenericSchema<unknown, T>, params: unknown): T {
  const result = v.safeParse(schema, params ?? {})
  if (result.success) return result.output
  const [issue] = result.issues
  const at = issue.path?.map(({ key }) => String(key)).join('.')
  throw notPossible('invalid_params', `${at ? `${at}: ` : ''}${issueText(issue)}`)
}
