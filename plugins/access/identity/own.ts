/** What an agent may look at. */
export interface Own {
  readonly session: string
  readonly workspace: string
}

/** Routes whose handlers hold an agent to its own: what their parameters name has no id of a session or workspace in it. */
const JUDGES_ITSELF = /^\/api\/(?:tools|(?:agent\/)?tasks|task-runs|task-reviews|runs|agent\/channels)\//

/** Parameters below a workspace whose handlers hold an agent to the channels and rooms of its own. */
const OF_NETWORK = /^\/api\/workspaces\/\{workspace_id\}\/network\//

/**
 * Whether the parameters of a path name this session and workspace only. A parameter that it does not know is
 * nobody's.
 * @param template `/api/things/{id}`
 * @param url path and query as they were sent
 */
export function isOwn(template: string, url: string, { session, workspace }: Own): boolean {
  if (JUDGES_ITSELF.test(template)) return true
  const [path = ''] = url.split('?')
  const given = path.split('/')
  return template.split('/').every((part, at) => {
    if (!part.startsWith('{')) return true
    if (part === '{session_id}') return given[at] === session
    // Which skills there are for the session is judged where they are read.
    if (part === '{name}' && template.startsWith('/api/skills/')) return true
    if (OF_NETWORK.test(template) && part !== '{workspace_id}') return true
    const isWorkspace = part === '{workspace_id}' || template.startsWith('/api/workspaces/{id}')
    return isWorkspace && given[at] === workspace
  })
}
