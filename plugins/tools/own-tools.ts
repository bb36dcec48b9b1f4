import type { NativeTool } from './api.js'

const SESSION = '/api/workspaces/{workspace_id}/sessions/{session_id}'

/** With which agents find, look at and call all the others: a model is shown these in place of every tool. */
export const ownTools: readonly NativeTool[] = [
  {
    name: 'tool_search',
    route: `POST ${SESSION}/tools/search`,
    description: 'Find tools by words. Then read the input of one with tool_info, and call it with tool_call.',
    toolsets: ['bootstrap', 'catalog'],
    risk: 'read',
  },
  { name: 'tool_list', route: `GET ${SESSION}/tools`, toolsets: ['catalog'] },
  {
    name: 'tool_info',
    route: 'GET /api/tools/{id}',
    description: 'Show a tool: its input schema, its risk, and why it cannot be called.',
    toolsets: ['bootstrap', 'catalog'],
  },
  {
    name: 'tool_call',
    route: 'POST /api/tools/{id}/invoke',
    description:
      'Call a tool by its id with an input of its schema. It is judged and approved as if it were called by itself.',
    toolsets: ['bootstrap', 'catalog'],
    judgedInside: true,
  },
  { name: 'toolset_list', route: 'GET /api/toolsets', toolsets: ['catalog'] },
  { name: 'toolset_info', route: 'GET /api/toolsets/{id}', toolsets: ['catalog'] },
  {
    name: 'tool_artifact_read',
    route: 'GET /api/workspaces/{workspace_id}/tool-artifacts/{artifact_id}',
    toolsets: ['tool_artifacts'],
  },
  { name: 'tool_approval_status', route: 'GET /api/tools/approvals/{id}', toolsets: ['tool_approvals'] },
  { name: 'tool_approval_cancel', route: 'POST /api/tools/approvals/{id}/cancel', toolsets: ['tool_approvals'] },
  {
    name: 'tool_grants_list',
    route: 'GET /api/tool-approval-grants',
    toolsets: ['tool_approvals'],
    visibility: 'operator',
  },
]
