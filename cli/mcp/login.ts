import type { BeginMcpAuthReply, McpAuthStatus } from '../../schemas/settings/mcp-servers.js'
import { CliFault } from '../fault.js'
import type { LocalContext } from '../local.js'
import { openBrowser } from '../open-browser.js'
import { currentWorkspace, workspaceReference } from '../workspace-context.js'

/** Poll interval for the end of the login. */
const ASK_MS = 1000

/**
 * `svc mcp auth login <name>`: prints the address, opens a browser if possible, and waits for its return or for a pasted final
 * address.
 */
export async function logInToServer({
  args,
  client,
  io,
  options,
  out,
  terminal,
  unseen,
}: LocalContext): Promise<undefined> {
  const name = args.name ?? ''
  const { workspace: named, code, 'no-browser': noBrowser } = options
  // The server that `svc mcp list` shows here: that of the current workspace, or a global one.
  const workspace = named === undefined ? await currentWorkspace(io, client) : workspaceReference(String(named), io.cwd)
  const query = new URLSearchParams({
    scope: workspace === undefined ? 'global' : 'workspace',
    ...(workspace !== undefined && { workspace_id: workspace }),
  })
  const at = (what: string) => `/api/settings/mcp-servers/${encodeURIComponent(name)}/auth/${what}?${query}`
  const exchange = (text: string) => {
    const body = URL.canParse(text) ? { redirect_url: text } : { code: text }
    return client.request('POST', at('exchange'), body) as Promise<McpAuthStatus>
  }
  const done = (status: McpAuthStatus) => {
    if (out.json) out.value(status)
    else out.line(`logged in to ${name}${status.issuer ? ` at ${status.issuer}` : ''}`)
    return undefined
  }
  if (code !== undefined) return done(await exchange(String(code)))
  const login = (await client.request('POST', at('begin'), { mode: 'automatic' })) as BeginMcpAuthReply
  if (out.json && !terminal) {
    out.value(login)
    return undefined
  }
  out.line(`Log in here: ${login.authorization_url}`)
  out.line('Waiting for the browser. If it cannot come back, paste the address that it ends at; it is not shown.')
  if (!noBrowser) openBrowser(login.authorization_url)
  let pasted: Promise<McpAuthStatus> | undefined
  const reading = new AbortController()
  /** The address contains the authorization code, which must not stay on the screen. */
  const readPasted = async () => {
    for (;;) {
      const line = await unseen?.('', reading.signal)
      if (line === undefined) return
      if (line.trim() === '') continue
      pasted = exchange(line.trim())
      return pasted.catch(() => {})
    }
  }
  if (terminal) void readPasted()
  try {
    while (Date.now() < Date.parse(login.expires_at)) {
      if (pasted) return done(await pasted)
      const status = (await client.request('GET', at('status'))) as McpAuthStatus
      if (status.token_present && Date.parse(status.updated_at ?? '') >= Date.parse(login.expires_at) - 10 * 60_000)
        if (status.status === 'authenticated') return done(status)
      await new Promise(resolve => setTimeout(resolve, ASK_MS))
      if (io.signal.aborted) return undefined
    }
  } finally {
    reading.abort()
  }
  throw new CliFault('mcp_auth_timed_out', `the login to ${name} was not completed within ten minutes`, {
    next: `svc mcp auth login ${name}`,
  })
}
