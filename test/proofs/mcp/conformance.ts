import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { conformance } from './packages.js'
import { type Step, SVC, type World } from './world.js'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const FIXTURE = here('./fixture-server.mjs')
const BRIDGE = here('./bridge.mjs')
const CLIENT = here('./conformance-client.mjs')

/** Of `svc mcp serve`: the protocol itself, and what a tool of a server gives, unchanged. Prompts and resources are not served. */
const AS_SERVER = [
  'server-initialize',
  'ping',
  'tools-list',
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-error',
  'json-schema-2020-12',
]
/**
 * Of the daemon as a client. Left out: `sse-retry`, which judges by the clock, and elicitation, which the daemon does not do.
 */
const AS_CLIENT = [
  'initialize',
  'tools_call',
  'auth/metadata-default',
  'auth/metadata-var1',
  'auth/metadata-var2',
  'auth/metadata-var3',
  'auth/scope-from-www-authenticate',
  'auth/scope-from-scopes-supported',
  'auth/scope-omitted-when-undefined',
  'auth/token-endpoint-auth-basic',
  'auth/token-endpoint-auth-post',
  'auth/token-endpoint-auth-none',
  'auth/pre-registration',
  'auth/offline-access-scope',
  'auth/resource-mismatch',
  'auth/basic-cimd',
  'auth/scope-step-up',
  'auth/scope-retry-limit',
  'auth/2025-03-26-oauth-metadata-backcompat',
  'auth/2025-03-26-oauth-endpoint-fallback',
]
/** At each change: without what another scenario goes through as well. */
const isTriedEachTime = (name: string) =>
  !/^(ping|tools-call-(simple-text|image|audio)|initialize)$|var[12]|-default$|-(none|basic)$|-omitted|-supported$|offline/.test(
    name,
  )

/** The servers that these steps need, for `mcp.json`. */
export const conformanceServers = { fixture: { command: process.execPath, args: [FIXTURE] } }

/** The conformance runner against the daemon, as a server and as a client. */
export function conformanceSteps(world: World, all: boolean): readonly Step[] {
  const wanted = (names: readonly string[]) => (all ? names : names.filter(isTriedEachTime))
  const run = async (args: readonly string[]) => {
    const { code, stdout, stderr } = await world.program([...conformance(), ...args])
    const failures = `${stdout}${stderr}`.split('\n').filter(line => /FAIL|Error/.test(line))
    return code === 0 ? [] : [`${args.at(-1)} ended with ${code}: ${failures.join('; ').slice(0, 1000)}`]
  }
  const judged = async (names: readonly string[], argsOf: (name: string) => readonly string[]) => {
    const wrong: string[] = []
    for (const name of names) wrong.push(...(await run(argsOf(name))))
    if (wrong.length > 0) throw new Error(wrong.join('\n'))
    return `${names.length} scenarios passed`
  }
  return [
    {
      what: 'the conformance runner accepts svc mcp serve',
      async run() {
        const serve = [process.execPath, SVC, 'mcp', 'serve', '--all']
        const bridge = spawn(process.execPath, [BRIDGE, 'mcp__fixture__', ...serve], {
          env: world.env,
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        try {
          const [line] = await once(bridge.stdout, 'data')
          return await judged(wanted(AS_SERVER), name => ['server', '--url', String(line).trim(), '--scenario', name])
        } finally {
          bridge.kill()
        }
      },
    },
    {
      what: 'and the daemon as a client, which logs in to its authorization servers',
      run() {
        const client = `${process.execPath} ${CLIENT} ${world.home}/daemon.sock`
        return judged(wanted(AS_CLIENT), name => ['client', '--command', client, '--scenario', name])
      },
    },
  ]
}
