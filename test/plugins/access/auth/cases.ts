import { canRunCode } from '../../../../kernel/kit/annotations/index.js'
import { isSchema } from '../../../../kernel/platform.js'
import type { Route } from '../../../../kernel/plugin.js'

/** `reached`: everything before the handler let it pass. */
export type Answer = 'reached' | `${number} ${string}`
type ByRoute = (route: Route) => Answer

export interface Case {
  readonly name: string
  /** What stands in Authorization; `key` of a program, `revoked` of a key that was deleted. Absent: nothing. */
  readonly token?: 'operator' | 'key' | 'revoked' | 'wrong' | 'foreign'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Left out of the request although HTTP wants it. */
  readonly noHost?: true
  /** As a process of another user. */
  readonly stranger?: true
  /** With `http.trust_own_user`. */
  readonly trusting?: true
  /** What comes over TCP, and over the Unix socket; by the route where that decides. */
  readonly tcp: Answer | ByRoute
  readonly socket?: Answer | ByRoute
}

const onlyPublic =
  (otherwise: Answer): ByRoute =>
  route =>
    route.public ? 'reached' : otherwise
const unknown = onlyPublic('401 identity_required')
/** Routes that take bytes say of which types. */
const onlyJson: ByRoute = ({ body }) =>
  body && !isSchema(body) && body.types.some(type => ['*/*', 'text/*', 'text/plain'].includes(type))
    ? 'reached'
    : '415 unsupported_media_type'

const proxied = { 'x-forwarded-for': '192.0.2.7', 'x-forwarded-proto': 'https', forwarded: 'for=192.0.2.7' }
const foreign = { host: 'evil.example' }

/** Each is sent to every route. Over the Unix socket, `reached` unless the case says otherwise. */
export const cases: readonly Case[] = [
  { name: 'the operator token', token: 'operator', tcp: 'reached' },
  { name: 'an API key', token: 'key', tcp: 'reached' },
  { name: 'no token', tcp: unknown },
  { name: 'a wrong token', token: 'wrong', tcp: '401 token_unknown' },
  { name: 'a token of another program', token: 'foreign', tcp: unknown },
  { name: 'a revoked key', token: 'revoked', tcp: '401 token_unknown' },
  { name: 'a foreign Host', token: 'operator', headers: foreign, tcp: '421 misdirected' },
  { name: 'a foreign Host without a token', headers: foreign, tcp: '421 misdirected' },
  { name: 'no Host', token: 'operator', noHost: true, tcp: '421 misdirected' },
  { name: 'a foreign Origin', token: 'operator', headers: { origin: 'https://evil.example' }, tcp: '403 cross_site' },
  { name: 'the Origin null', token: 'operator', headers: { origin: 'null' }, tcp: '403 cross_site' },
  {
    name: 'a page of another site',
    token: 'operator',
    headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' },
    tcp: '403 cross_site',
  },
  {
    name: 'text/plain',
    token: 'operator',
    headers: { 'content-type': 'text/plain' },
    body: '{}',
    tcp: onlyJson,
    socket: onlyJson,
  },
  { name: 'the own user where it is trusted', trusting: true, tcp: 'reached' },
  { name: 'a wrong token where the own user is trusted', token: 'wrong', trusting: true, tcp: '401 token_unknown' },
  {
    name: 'another user where the own is trusted',
    stranger: true,
    trusting: true,
    tcp: onlyPublic('401 unauthorized_peer'),
  },
  { name: 'another user', stranger: true, tcp: unknown },
  { name: 'another user with the operator token', stranger: true, token: 'operator', tcp: 'reached' },
  { name: 'behind a reverse proxy', headers: proxied, tcp: unknown },
  { name: 'behind a reverse proxy where the own user is trusted', headers: proxied, trusting: true, tcp: unknown },
  { name: 'behind a reverse proxy with the operator token', headers: proxied, token: 'operator', tcp: 'reached' },
  {
    name: 'behind a reverse proxy of an allowed name where the own user is trusted',
    headers: { host: 'box.example' },
    trusting: true,
    tcp: unknown,
  },
]

/** What a process inside a sandbox is answered, which is an agent's: it has no way to the operator's socket. */
export interface InsideCase {
  readonly name: string
  /** Sandbox of its session. */
  readonly sandbox: 'default' | 'offline'
  readonly token?: 'operator' | 'wrong'
  /** `unreachable`: nothing answers there. */
  readonly tcp: Answer | ByRoute | 'unreachable'
  readonly socket: 'unreachable'
}

/** Also whoever found the operator token descends from an agent: nothing that could make code run is done for it. */
const nothingThatRunsCode: ByRoute = route => (canRunCode(route) ? '403 identity_unauthorized' : 'reached')

/** A webhook makes code run: an agent may send none, even one that is public. */
const onlyHarmless: ByRoute = route => (route.public && canRunCode(route) ? nothingThatRunsCode(route) : unknown(route))

export const insideCases: readonly InsideCase[] = [
  { name: 'without a token', sandbox: 'default', tcp: onlyHarmless, socket: 'unreachable' },
  { name: 'with a wrong token', sandbox: 'default', token: 'wrong', tcp: '401 token_unknown', socket: 'unreachable' },
  {
    name: 'with the operator token',
    sandbox: 'default',
    token: 'operator',
    tcp: nothingThatRunsCode,
    socket: 'unreachable',
  },
  { name: 'without a network', sandbox: 'offline', token: 'operator', tcp: 'unreachable', socket: 'unreachable' },
]

/** Routes that change something and say that they cannot make code run: everything else counts as able to. */
export const harmless = [
  'DELETE /api/console/push/{id}',
  'DELETE /api/console/sessions',
  'DELETE /api/console/sessions/{id}',
  'DELETE /api/network/remote/acceptance',
  'DELETE /api/network/remote/channels/{channel}',
  'DELETE /api/network/remote/peers/{name}',
  'DELETE /api/notifications/presets/{name}',
  'DELETE /api/tasks/{id}/notifications/bridges/{subscription_id}',
  'DELETE /api/v0/auth/keys/{id}',
  'DELETE /api/workspaces/{workspace_id}/network/channels/{channel}/subscriptions/{session_id}',
  'DELETE /api/workspaces/{workspace_id}/sessions/{session_id}/attachments/{attachment_id}',
  'DELETE /api/workspaces/{workspace_id}/sessions/{session_id}/prompt/queue/{queue_entry_id}',
  'DELETE /api/workspaces/{workspace_id}/window-manager/clients/{client_id}',
  'DELETE /api/workspaces/{workspace_id}/window-manager/layout-profiles/{profile_id}',
  'PATCH /api/workspaces/{workspace_id}/network/channels/{channel}',
  'POST /api/agent/notify',
  'POST /api/agent/soul/validate',
  'POST /api/agent/tasks/claim-next',
  'POST /api/agent/tasks/{run_id}/complete',
  'POST /api/agent/tasks/{run_id}/fail',
  'POST /api/agent/tasks/{run_id}/heartbeat',
  'POST /api/agent/tasks/{run_id}/release',
  'POST /api/agent/tasks/{run_id}/start',
  'POST /api/agents/{name}/heartbeat/validate',
  'POST /api/agents/{name}/soul/validate',
  'POST /api/backups',
  'POST /api/backups/confirm',
  'POST /api/bridges/{id}/deliveries/{delivery_id}/discard',
  'POST /api/bridges/{id}/deliveries/{delivery_id}/resend',
  'POST /api/bridges/{id}/resolve',
  'POST /api/bridges/{id}/test-delivery',
  'POST /api/bundles/preview',
  'POST /api/changes/plan',
  'POST /api/db/checkpoint',
  'POST /api/drain',
  'POST /api/network/remote/leave',
  'POST /api/notifications/attention/acknowledge',
  'POST /api/notifications/presets',
  'POST /api/support/bundles',
  'POST /api/task-reviews/{id}/cancel',
  'POST /api/task-reviews/{id}/route',
  'POST /api/task-reviews/{id}/start',
  'POST /api/task-runs/{id}/reviews',
  'POST /api/tasks/{id}/blocks',
  'POST /api/tasks/{id}/notifications/bridges',
  'POST /api/tasks/{id}/restore',
  'POST /api/tools/approvals/{id}/cancel',
  'POST /api/tools/search',
  'POST /api/undrain',
  'POST /api/workspaces/{workspace_id}/automation/suggestions',
  'POST /api/workspaces/{workspace_id}/network/channels/{channel}/directs/resolve',
  'POST /api/workspaces/{workspace_id}/network/channels/{channel}/threads/{thread_id}/promote-task',
  'POST /api/workspaces/{workspace_id}/sessions/{session_id}/archive',
  'POST /api/workspaces/{workspace_id}/sessions/{session_id}/attach',
  'POST /api/workspaces/{workspace_id}/sessions/{session_id}/clarifications',
  'POST /api/workspaces/{workspace_id}/sessions/{session_id}/presence',
  'POST /api/workspaces/{workspace_id}/sessions/{session_id}/prompt/cancel',
  'POST /api/workspaces/{workspace_id}/sessions/{session_id}/stop',
  'POST /api/workspaces/{workspace_id}/sessions/{session_id}/tools/search',
  'POST /api/workspaces/{workspace_id}/sessions/{session_id}/unarchive',
  'POST /api/workspaces/{workspace_id}/sessions/{session_id}/wait',
  'POST /api/workspaces/{workspace_id}/window-manager/clients',
  'POST /api/workspaces/{workspace_id}/window-manager/commands',
  'POST /api/workspaces/{workspace_id}/window-manager/layout/validate',
  'POST /api/workspaces/{workspace_id}/window-manager/preview',
  'PUT /api/notifications/presets/{name}',
  'PUT /api/notifications/presets/{name}/enablement',
  'PUT /api/workspaces/{workspace_id}/network-coordination',
  'PUT /api/workspaces/{workspace_id}/network-coordination/invitation',
  'PUT /api/workspaces/{workspace_id}/network/channels/{channel}/subscriptions',
  'PUT /api/workspaces/{workspace_id}/window-manager/layout',
  'PUT /api/workspaces/{workspace_id}/window-manager/layout-profiles/{profile_id}',
]
