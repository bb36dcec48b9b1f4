// The daemon as an MCP client, for the conformance runner: `node conformance-client.mjs <socket> <url>`. Declares the server of the
// runner in the running daemon, logs in where it wants that, as a person's browser would, and calls each of its tools.
import { request } from 'node:http'

const [socketPath, url] = process.argv.slice(2)
const name = `runner_${process.pid}`
const at = `/api/settings/mcp-servers/${name}`
const INPUTS = { add_numbers: { a: 5, b: 3 } }
const MOST_HOPS = 10
/** A document that describes a client: the only one that the runner knows. */
const CLIENT_DOCUMENT = 'https://conformance-test.local/client-metadata.json'

function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const sent = request({ socketPath, method, path, headers }, async response => {
      const text = Buffer.concat(await response.toArray()).toString()
      resolve({ status: response.statusCode, body: text === '' ? {} : JSON.parse(text) })
    })
    sent.on('error', reject)
    sent.end(body && JSON.stringify(body))
  })
}

async function must(method, path, body) {
  const reply = await ask(method, path, body)
  if (reply.status < 300) return reply.body
  throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
}

/** Who logs in to the server: whoever registers a client by hand knows it. */
async function issuer() {
  const metadata = await (await fetch(new URL('/.well-known/oauth-protected-resource/mcp', url))).json()
  return metadata.authorization_servers[0]
}

/** Follows the address of a login to the page that it ends at. */
async function logIn({ client_id, client_secret, document }) {
  const registered = client_id && { registration: 'pre_registered', client_id, issuer_url: await issuer() }
  await must('PUT', at, {
    server: {
      name,
      url,
      auth: { type: 'oauth', registration: 'auto', ...(document && { client_id: document }), ...registered },
    },
    ...(client_secret && { secret_values: { oauth_client_secret: client_secret } }),
  })
  const { authorization_url } = await must('POST', `${at}/auth/begin?scope=global`, { mode: 'automatic' })
  let next = authorization_url
  for (let hops = 0; hops < MOST_HOPS; hops++) {
    const reply = await fetch(next, { redirect: 'manual' })
    const location = reply.headers.get('location')
    if (!location) {
      if (reply.status !== 200) throw new Error(`the login ended at ${next}: ${reply.status} ${await reply.text()}`)
      return
    }
    next = new URL(location, next).href
  }
}

const probed = () => must('GET', `${at}?probe=true`)
try {
  await must('PUT', at, { server: { name, url } })
  const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? ''
  const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}')
  if (scenario.startsWith('auth/')) {
    await logIn(scenario === 'auth/basic-cimd' ? { document: CLIENT_DOCUMENT } : context)
  }
  const { mcp_server: server } = await probed()
  console.log(JSON.stringify(server))
  if (!server.runtime_status?.initialized) throw new Error(`it cannot be used: ${JSON.stringify(server)}`)
  for (const { id } of server.tools ?? []) {
    const tool = id.split('__').at(-1)
    const call = () => ask('POST', `/api/tools/${id}/invoke`, { input: INPUTS[tool] ?? {} })
    const first = await call()
    if (first.status < 300) continue
    // For more scopes a person logs in again.
    if (!first.body.error?.reason_codes?.includes('mcp_auth_required')) throw new Error(JSON.stringify(first))
    await logIn(context)
    const second = await call()
    if (second.status >= 300) throw new Error(JSON.stringify(second))
  }
} finally {
  await ask('DELETE', at)
}
