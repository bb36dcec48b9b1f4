/** The session and workspace that an agent may access. */
export interface Own {
  readonly session: string
  readonly workspace: string
}

/** Routes whose handlers confine an agent themselves, because their parameters contain no session or workspace id. */
const JUDGES_ITSELF = /^\/api\/(?:tools|(?:agent\/)?tasks|task-runs|task-reviews|runs|agent\/channels)\//

/** Routes whose handlers confine an agent to the channels and rooms of its workspace. */
const OF_NETWORK = /^\/api\/workspaces\/\{workspace_id\}\/network\//

/**
 * Whether the path parameters name only this session and workspace. An unknown parameter counts as foreign.
 * @param template `/api/things/{id}`
 * @param url path and query of the request
 */
export function isOwn(template: string, url: string, { session, workspace }: Own): boolean {
  if (JUDGES_ITSELF.test(template)) return true
  const [path = ''] = url.split('?')
  const segments = path.split('/')
  return template.split('/').every((part, at) => {
    if (!part.startsWith('{')) return true
    if (part === '{session_id}') return segments[at] === session
    // The handler checks which skills the session has.
    if (part === '{name}' && template.startsWith('/api/skills/')) return true
    if (OF_NETWORK.test(template) && part !== '{workspace_id}') return true
    const isWorkspace = part === '{workspace_id}' || template.startsWith('/api/workspaces/{id}')
    return isWorkspace && segments[at] === workspace
  })
}
