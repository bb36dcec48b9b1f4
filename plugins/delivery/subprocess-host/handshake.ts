import * as v from 'valibot'
import { issueLine } from '../../../kernel/kit/issue-text.js'
import { type Grants, type InstalledExtension, type Provision, provisions } from '../extensions/api.js'

export const PROTOCOL_VERSIONS = ['1']
/** Methods that every process implements. */
const BASIC = ['health_check', 'shutdown']

const names = v.pipe(v.array(v.pipe(v.string(), v.maxLength(256))), v.maxLength(1024))

/** The answer of a process to `initialize`. */
export const Answer = v.object({
  protocol_version: v.string(),
  extension_info: v.object({
    name: v.string(),
    version: v.string(),
    sdk_name: v.optional(v.string()),
    sdk_version: v.optional(v.string()),
  }),
  accepted_capabilities: v.object({ provides: names, permissions: names }),
  implemented_methods: names,
  supported_hook_events: v.optional(names, []),
  watch_source_kinds: v.optional(names),
  supports: v.optional(v.object({ health_check: v.optional(v.boolean(), true) }), {}),
})

/** The checked answer of a process. */
export type Handshake = v.InferOutput<typeof Answer>

/** Intervals and timeouts of a process, in milliseconds. */
export interface Times {
  readonly initialize: number
  readonly healthInterval: number
  readonly healthTimeout: number
  readonly hook: number
  readonly shutdown: number
  /** Between SIGTERM and SIGKILL. */
  readonly signalGrace: number
}

/** The parameters of `initialize`. */
export function greeting(
  { name, version, tier, manifest, workspace }: InstalledExtension,
  grants: Grants,
  times: Times,
  daemon: { readonly version: string; readonly nonce: string },
  more: Readonly<Record<string, unknown>> = {},
) {
  const { provides } = manifest.capabilities
  return {
    protocol_version: PROTOCOL_VERSIONS[0],
    supported_protocol_versions: PROTOCOL_VERSIONS,
    svc_version: daemon.version,
    session_nonce: daemon.nonce,
    extension: { name, version, source_tier: tier, ...(workspace ? { workspace_id: workspace } : {}) },
    capabilities: {
      provides,
      granted_permissions: grants.permissions,
      granted_resource_kinds: grants.kinds,
      granted_resource_scopes: grants.scopes,
    },
    methods: { daemon_requests: BASIC, extension_services: servicesOf(provides) },
    runtime: {
      ...more,
      health_check_interval_ms: times.healthInterval,
      health_check_timeout_ms: times.healthTimeout,
      shutdown_timeout_ms: times.shutdown,
      default_hook_timeout_ms: times.hook,
    },
  }
}

/**
 * Checks the answer to `initialize`: the protocol is supported, nothing is accepted that was not offered, and all
 * required methods are implemented. @throws Error with the problem
 */
export function checkReply(
  answer: unknown,
  offered: { provides: readonly string[]; permissions: readonly string[] },
): Handshake {
  const parsed = v.safeParse(Answer, answer)
  if (!parsed.success) {
    const [issue] = parsed.issues
    throw new Error(`the answer to initialize: ${issueLine(issue)}`)
  }
  const reply = parsed.output
  if (!PROTOCOL_VERSIONS.includes(reply.protocol_version)) {
    throw new Error(`it speaks protocol ${reply.protocol_version}; supported: ${PROTOCOL_VERSIONS.join(', ')}`)
  }
  const { provides, permissions } = reply.accepted_capabilities
  refuse('accepts capabilities that were not offered', [
    ...provides.filter(one => !offered.provides.includes(one)),
    ...permissions.filter(one => !offered.permissions.includes(one)),
  ])
  const needed = [...BASIC, ...servicesOf(provides as Provision[])]
  refuse(
    'does not implement',
    needed.filter(method => !reply.implemented_methods.includes(method)),
  )
  return reply
}

const servicesOf = (provides: readonly Provision[]): string[] => provides.flatMap(one => [...provisions[one]])

function refuse(what: string, found: readonly string[]): void {
  if (found.length > 0) throw new Error(`it ${what}: ${found.join(', ')}`)
}
