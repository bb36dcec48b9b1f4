import { boundedFetch } from '../client/bounded-fetch.js'
import type { StreamOver } from '../client/event-stream.js'
import { McpErrors } from '../errors.js'
import type { Server } from '../sources/declaration.js'
import type { Logins } from './logins.js'

/** The `fetch` of an HTTP server, with its token, which is renewed once if the server refuses it. */
export const tokenFetch =
  (logins: Logins, server: Server) =>
  (headers: Readonly<Record<string, string>>, over: StreamOver): typeof fetch => {
    if (!server.declaration.auth) {
      const plain = boundedFetch(headers, over)
      return async (input, init) => {
        const reply = await plain(input, init)
        if (reply.status !== 401) return reply
        throw McpErrors.mcp_auth_unconfigured(`${server.name} requires a login; add it with --oauth`)
      }
    }
    return async (input, init) => {
      const send = (token: string) => boundedFetch({ ...headers, authorization: `Bearer ${token}` }, over)(input, init)
      const token = await logins.token(server)
      const reply = await send(token)
      if (reply.status === 403) await checkScope(logins, server, reply)
      if (reply.status !== 401) return reply
      await reply.body?.cancel()
      const second = await send(await logins.token(server, token))
      if (second.status !== 401) return second
      throw McpErrors.mcp_auth_invalid(`${server.name} does not accept a token that was just renewed`)
    }
  }

/** Throws `mcp_auth_required` if the token lacks a scope. */
async function checkScope(logins: Logins, server: Server, reply: Response): Promise<void> {
  const { extractWWWAuthenticateParams } = await import('@modelcontextprotocol/client')
  const { error, scope = '' } = extractWWWAuthenticateParams(reply)
  if (error !== 'insufficient_scope') return
  await reply.body?.cancel()
  throw logins.lacks(server, scope)
}
