import type { NativeTool } from '../tools/api.js'

const toolsets = ['sessions'] as const

/** How agents see the sessions of their workspace and work with them. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'session_list', route: 'GET /api/sessions', toolsets },
  { name: 'session_info', route: 'GET /api/workspaces/{workspace_id}/sessions/{session_id}', toolsets },
  { name: 'session_status', route: 'GET /api/workspaces/{workspace_id}/sessions/{session_id}/status', toolsets },
  { name: 'session_health', route: 'GET /api/workspaces/{workspace_id}/sessions/{session_id}/health', toolsets },
  { name: 'session_events', route: 'GET /api/workspaces/{workspace_id}/sessions/{session_id}/events', toolsets },
  { name: 'session_history', route: 'GET /api/workspaces/{workspace_id}/sessions/{session_id}/history', toolsets },
  {
    name: 'session_transcript',
    route: 'GET /api/workspaces/{workspace_id}/sessions/{session_id}/transcript',
    toolsets,
  },
  { name: 'session_recap', route: 'GET /api/workspaces/{workspace_id}/sessions/{session_id}/recap', toolsets },
  { name: 'session_usage', route: 'GET /api/workspaces/{workspace_id}/sessions/{session_id}/usage', toolsets },
  { name: 'session_inspect', route: 'GET /api/workspaces/{workspace_id}/sessions/{session_id}/inspect', toolsets },
  { name: 'session_queue', route: 'GET /api/workspaces/{workspace_id}/sessions/{session_id}/prompt/queue', toolsets },
  { name: 'goal_status', route: 'GET /api/workspaces/{workspace_id}/sessions/{session_id}/goal', toolsets },
  {
    name: 'session_wait',
    route: 'POST /api/workspaces/{workspace_id}/sessions/{session_id}/wait',
    toolsets,
    risk: 'read',
  },
  {
    name: 'clarify',
    route: 'POST /api/workspaces/{workspace_id}/sessions/{session_id}/clarifications',
    description:
      'Ask the person something that you cannot find out yourself, in words or with choices, and wait for the answer. `fallback` true: nobody answered; go on by yourself',
    toolsets,
    // Less than a call of a tool may take.
    fixed: { timeout_seconds: 100 },
    // It changes nothing, and what it asks is answered by a person.
    risk: 'read',
  },
  { name: 'session_create', route: 'POST /api/sessions', toolsets },
  { name: 'session_prompt', route: 'POST /api/workspaces/{workspace_id}/sessions/{session_id}/prompt', toolsets },
  {
    name: 'session_cancel',
    route: 'POST /api/workspaces/{workspace_id}/sessions/{session_id}/prompt/cancel',
    toolsets,
  },
  { name: 'session_stop', route: 'POST /api/workspaces/{workspace_id}/sessions/{session_id}/stop', toolsets },
  { name: 'session_update', route: 'PATCH /api/workspaces/{workspace_id}/sessions/{session_id}', toolsets },
  { name: 'session_archive', route: 'POST /api/workspaces/{workspace_id}/sessions/{session_id}/archive', toolsets },
  { name: 'session_unarchive', route: 'POST /api/workspaces/{workspace_id}/sessions/{session_id}/unarchive', toolsets },
  { name: 'session_remove', route: 'DELETE /api/workspaces/{workspace_id}/sessions/{session_id}', toolsets },
]
