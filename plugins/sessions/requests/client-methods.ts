import { type ClientApp, methods, RequestError } from '@agentclientprotocol/sdk'
import * as v from 'valibot'
import { issueText } from '../../../kernel/plugin.js'
import { notPossible, refusalOf } from '../acp/error.js'
import * as schemas from '../acp/schemas.js'
import { readTextFile, writeTextFile } from './files.js'
import { resolveInside, type Territory } from './paths.js'
import type { Permissions } from './permissions.js'
import type { Terminals } from './terminals.js'

/** The client methods that an agent may call: files, terminals, permission. */
export class ClientMethods {
  constructor(
    private readonly territory: Territory,
    private readonly permissions: Permissions,
    private readonly terminals: Terminals,
  ) {}

  /** Puts the methods on an ACP client. */
  register(app: ClientApp): ClientApp {
    const { fs, session, terminal } = methods.client
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
    return { content: await readTextFile(canonical, line, limit) }
  }

  async #write({ path, content }: v.InferOutput<typeof schemas.WriteFileParams>): Promise<void> {
    const canonical = await resolveInside(this.territory, path)
    await this.permissions.checkWrite(canonical)
    await writeTextFile(canonical, content)
  }

  async #createTerminal(params: schemas.CreateTerminalParams) {
    const cwd = await resolveInside(this.territory, params.cwd ?? '.')
    await this.permissions.checkCommand([params.command, ...(params.args ?? [])])
    return { terminalId: await this.terminals.create(params, cwd) }
  }
}

function decode<T>(schema: v.GenericSchema<unknown, T>, params: unknown): T {
  const result = v.safeParse(schema, params ?? {})
  if (result.success) return result.output
  const [issue] = result.issues
  const at = issue.path?.map(({ key }) => String(key)).join('.')
  throw notPossible('invalid_params', `${at ? `${at}: ` : ''}${issueText(issue)}`)
}
