/** What access a method of the Host API needs, `area.access`, as people consent to it. */
export type Consent = `${string}.${'read' | 'write'}`

const area = (name: string, reads: string, writes = ''): [string, Consent][] => [
  ...words(reads).map((method): [string, Consent] => [method, `${name}.read`]),
  ...words(writes).map((method): [string, Consent] => [method, `${name}.write`]),
]
const words = (text: string) => text.split(/\s+/).filter(word => word !== '')
const below = (path: string, names: string) =>
  words(names)
    .map(name => `${path}/${name}`)
    .join(' ')

/** The methods of the Host API, a closed set, each with the consent that it asks for (Behaviour 3.2). */
export const hostMethods: ReadonlyMap<string, Consent> = new Map([
  ...area('session', below('sessions', 'list status events history'), below('sessions', 'create prompt stop resume')),
  ...area('sandbox', below('sandbox', 'list info'), below('sandbox', 'exec')),
  ...area('memory', below('memory', 'list recall'), below('memory', 'store forget')),
  ...area('observe', 'observe/health'),
  ...area('logs', 'logs/list'),
  ...area('skills', 'skills/list'),
  ...area('models', below('models', 'list'), below('models', 'refresh')),
  ...area('agent', below('agents/soul', 'get validate history'), below('agents/soul', 'put delete rollback')),
  ...area(
    'agent',
    below('agents/heartbeat', 'get validate history status'),
    below('agents/heartbeat', 'put delete rollback wake'),
  ),
  ...area(
    'automation',
    `${below('automation/jobs', 'list get runs')} ${below('automation/triggers', 'list get runs')} ${below('automation/runs', 'list get')}`,
    `${below('automation/jobs', 'create update delete trigger')} ${below('automation/triggers', 'create update delete')}`,
  ),
  ...area(
    'task',
    `${below('tasks', 'list get')} ${below('tasks/runs', 'list get')}`,
    `${below('tasks', 'create update delete cancel publish approve reject')} ${below('tasks/children', 'create')} ` +
      `${below('tasks/dependencies', 'add remove')} ${below('tasks/runs', 'enqueue claim complete fail cancel')}`,
  ),
  ...area(
    'network',
    `${below('network', 'status peers')} ${below('network/channels', 'list')} ` +
      `${below('network/threads', 'list messages')} ${below('network/directs', 'list messages')} ${below('network/work', 'get')}`,
    `${below('network', 'send')} ${below('network/channels', 'create')} ${below('network/directs', 'resolve')}`,
  ),
  ...area('resource', below('resources', 'list get'), below('resources', 'snapshot')),
  ...area('bridge', below('bridges/instances', 'list get'), 'bridges/instances/report_state bridges/messages/ingest'),
  ...area('clarify', '', 'clarify/ask'),
])
