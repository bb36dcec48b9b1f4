/** What is consented to: to read, or to change, what lies in one area. */
export type Consent = `${string}.${'read' | 'write'}`

/** A method of the Host API. */
export interface HostMethod {
  readonly consent: Consent
  /**
   * The route of the daemon that answers it, `GET /api/things/{id}`: parameters that the path names go there, the others into
   * the query of a GET and into the body of anything else. Absent: no route does.
   */
  readonly route?: `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /api/${string}`
}

const SESSION = '/api/workspaces/{workspace_id}/sessions/{session_id}'
const NETWORK = '/api/workspaces/{workspace_id}/network'
const CHANNEL = `${NETWORK}/channels/{channel}`

const table: Readonly<Record<string, readonly [Consent, HostMethod['route']?]>> = {
  'sessions/list': ['session.read', 'GET /api/sessions'],
  'sessions/status': ['session.read', `GET ${SESSION}/status`],
  'sessions/events': ['session.read', `GET ${SESSION}/events`],
  'sessions/history': ['session.read', `GET ${SESSION}/history`],
  'sessions/create': ['session.write', 'POST /api/sessions'],
  'sessions/prompt': ['session.write', `POST ${SESSION}/prompt`],
  'sessions/stop': ['session.write', `POST ${SESSION}/stop`],
  'sessions/resume': ['session.write', `POST ${SESSION}/prompt`],
  'sandbox/list': ['sandbox.read', 'GET /api/sandboxes'],
  'sandbox/info': ['sandbox.read', 'GET /api/sandboxes/{session_id}'],
  'sandbox/exec': ['sandbox.write', 'POST /api/sandboxes/{session_id}/exec'],
  'memory/list': ['memory.read'],
  'memory/recall': ['memory.read'],
  'memory/store': ['memory.write'],
  'memory/forget': ['memory.write'],
  'observe/health': ['observe.read', 'GET /api/status'],
  'logs/list': ['logs.read', 'GET /api/logs'],
  'skills/list': ['skills.read', 'GET /api/skills'],
  'models/list': ['models.read', 'GET /api/model-catalog/models'],
  'models/refresh': ['models.write', 'POST /api/model-catalog/models/refresh'],
  'agents/soul/get': ['agent.read', 'GET /api/agents/{name}/soul'],
  'agents/soul/validate': ['agent.read', 'POST /api/agents/{name}/soul/validate'],
  'agents/soul/history': ['agent.read', 'GET /api/agents/{name}/soul/history'],
  'agents/soul/put': ['agent.write', 'PUT /api/agents/{name}/soul'],
  'agents/soul/delete': ['agent.write', 'DELETE /api/agents/{name}/soul'],
  'agents/soul/rollback': ['agent.write', 'POST /api/agents/{name}/soul/rollback'],
  'agents/heartbeat/get': ['agent.read', 'GET /api/agents/{name}/heartbeat'],
  'agents/heartbeat/validate': ['agent.read', 'POST /api/agents/{name}/heartbeat/validate'],
  'agents/heartbeat/history': ['agent.read', 'GET /api/agents/{name}/heartbeat/history'],
  'agents/heartbeat/status': ['agent.read', 'GET /api/agents/{name}/heartbeat/status'],
  'agents/heartbeat/put': ['agent.write', 'PUT /api/agents/{name}/heartbeat'],
  'agents/heartbeat/delete': ['agent.write', 'DELETE /api/agents/{name}/heartbeat'],
  'agents/heartbeat/rollback': ['agent.write', 'POST /api/agents/{name}/heartbeat/rollback'],
  'agents/heartbeat/wake': ['agent.write', 'POST /api/agents/{name}/heartbeat/wake'],
  'automation/jobs/list': ['automation.read', 'GET /api/automation/jobs'],
  'automation/jobs/get': ['automation.read', 'GET /api/automation/jobs/{id}'],
  'automation/jobs/runs': ['automation.read', 'GET /api/automation/jobs/{id}/runs'],
  'automation/jobs/create': ['automation.write', 'POST /api/automation/jobs'],
  'automation/jobs/update': ['automation.write', 'PATCH /api/automation/jobs/{id}'],
  'automation/jobs/delete': ['automation.write', 'DELETE /api/automation/jobs/{id}'],
  'automation/jobs/trigger': ['automation.write', 'POST /api/automation/jobs/{id}/trigger'],
  'automation/triggers/list': ['automation.read', 'GET /api/automation/triggers'],
  'automation/triggers/get': ['automation.read', 'GET /api/automation/triggers/{id}'],
  'automation/triggers/runs': ['automation.read', 'GET /api/automation/triggers/{id}/runs'],
  'automation/triggers/create': ['automation.write', 'POST /api/automation/triggers'],
  'automation/triggers/update': ['automation.write', 'PATCH /api/automation/triggers/{id}'],
  'automation/triggers/delete': ['automation.write', 'DELETE /api/automation/triggers/{id}'],
  'automation/events/emit': ['automation.write', 'POST /api/automation/events'],
  'automation/runs/list': ['automation.read', 'GET /api/automation/runs'],
  'automation/runs/get': ['automation.read', 'GET /api/automation/runs/{id}'],
  'tasks/list': ['task.read', 'GET /api/tasks'],
  'tasks/get': ['task.read', 'GET /api/tasks/{id}'],
  'tasks/create': ['task.write', 'POST /api/tasks'],
  'tasks/update': ['task.write', 'PATCH /api/tasks/{id}'],
  'tasks/delete': ['task.write', 'DELETE /api/tasks/{id}'],
  'tasks/cancel': ['task.write', 'POST /api/tasks/{id}/cancel'],
  'tasks/publish': ['task.write', 'POST /api/tasks/{id}/publish'],
  'tasks/approve': ['task.write', 'POST /api/tasks/{id}/approve'],
  'tasks/reject': ['task.write', 'POST /api/tasks/{id}/reject'],
  'tasks/children/create': ['task.write', 'POST /api/tasks/{id}/children'],
  'tasks/dependencies/add': ['task.write', 'POST /api/tasks/{id}/dependencies'],
  'tasks/dependencies/remove': ['task.write', 'DELETE /api/tasks/{id}/dependencies/{depends_on_id}'],
  'tasks/runs/list': ['task.read', 'GET /api/tasks/{id}/runs'],
  'tasks/runs/get': ['task.read', 'GET /api/task-runs/{id}'],
  'tasks/runs/enqueue': ['task.write', 'POST /api/tasks/{id}/runs'],
  'tasks/runs/claim': ['task.write', 'POST /api/task-runs/{id}/attach-session'],
  'tasks/runs/complete': ['task.write', 'POST /api/task-runs/{id}/complete'],
  'tasks/runs/fail': ['task.write', 'POST /api/task-runs/{id}/fail'],
  'tasks/runs/cancel': ['task.write', 'POST /api/task-runs/{id}/cancel'],
  'network/status': ['network.read', 'GET /api/network/status'],
  'network/peers': ['network.read', `GET ${NETWORK}/peers`],
  'network/send': ['network.write', `POST ${NETWORK}/send`],
  'network/channels/list': ['network.read', `GET ${NETWORK}/channels`],
  'network/channels/create': ['network.write', `POST ${NETWORK}/channels`],
  'network/threads/list': ['network.read', `GET ${CHANNEL}/threads`],
  'network/threads/messages': ['network.read', `GET ${CHANNEL}/threads/{thread_id}/messages`],
  'network/directs/list': ['network.read', `GET ${CHANNEL}/directs`],
  'network/directs/messages': ['network.read', `GET ${CHANNEL}/directs/{direct_id}/messages`],
  'network/directs/resolve': ['network.write', `POST ${CHANNEL}/directs/resolve`],
  'network/work/get': ['network.read', `GET ${NETWORK}/work/{work_id}`],
  'resources/list': ['resource.read', 'GET /api/resources'],
  'resources/get': ['resource.read', 'GET /api/resources/{kind}/{id}'],
  'resources/snapshot': ['resource.write'],
  'bridges/instances/list': ['bridge.read', 'GET /api/bridges'],
  'bridges/instances/get': ['bridge.read', 'GET /api/bridges/{id}'],
  'bridges/instances/report_state': ['bridge.write'],
  'bridges/messages/ingest': ['bridge.write'],
  'clarify/ask': ['clarify.write', `POST ${SESSION}/clarifications`],
}

/** The methods of the Host API, a closed set, each with the consent that it requires. */
export const hostMethods: ReadonlyMap<string, HostMethod> = new Map(
  Object.entries(table).map(([method, [consent, route]]) => [method, { consent, ...(route ? { route } : {}) }]),
)
