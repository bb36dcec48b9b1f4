import type { NativeTool } from '../../tools/api.js'

/** Toolsets with the tools that an agent needs to work on tasks, without those that manage tasks. */
const working = ['tasks', 'autonomy', 'coordination'] as const
const toolsets = ['tasks'] as const

/**
 * Native tools to find, claim and finish work. Operations of a lease holder change its own run only and need no approval.
 * Operations that create, queue or release work for others can start an agent and need approval.
 */
export const nativeTools: readonly NativeTool[] = [
  { name: 'task_list', route: 'GET /api/tasks', toolsets: working },
  { name: 'task_info', route: 'GET /api/tasks/{id}', toolsets: working },
  { name: 'task_timeline', route: 'GET /api/tasks/{id}/timeline', toolsets },
  { name: 'task_blocks', route: 'GET /api/tasks/{id}/blocks', toolsets },
  { name: 'task_runs', route: 'GET /api/tasks/{id}/runs', toolsets },
  { name: 'task_run_info', route: 'GET /api/task-runs/{id}', toolsets: working },
  {
    name: 'task_run_claim_next',
    route: 'POST /api/agent/tasks/claim-next',
    description:
      'Claim the next run for this session. Returns the run, its task and the lease with its expiry, or nothing when no run can ' +
      'be claimed. After a claim, call task_run_start, then task_run_heartbeat before each expiry of the lease, and finally ' +
      'task_run_complete, task_run_fail or task_run_release',
    toolsets: working,
    tags: ['work', 'next', 'claim'],
  },
  { name: 'task_run_start', route: 'POST /api/agent/tasks/{run_id}/start', toolsets: working },
  { name: 'task_run_heartbeat', route: 'POST /api/agent/tasks/{run_id}/heartbeat', toolsets: working },
  { name: 'task_run_complete', route: 'POST /api/agent/tasks/{run_id}/complete', toolsets: working, tags: ['done'] },
  { name: 'task_run_fail', route: 'POST /api/agent/tasks/{run_id}/fail', toolsets: working },
  { name: 'task_run_release', route: 'POST /api/agent/tasks/{run_id}/release', toolsets: working },
  { name: 'task_block', route: 'POST /api/tasks/{id}/blocks', toolsets: working, tags: ['ask', 'question', 'input'] },
  { name: 'task_reviews', route: 'GET /api/tasks/{id}/reviews', toolsets },
  { name: 'task_review_info', route: 'GET /api/task-reviews/{id}', toolsets },
  { name: 'task_review_start', route: 'POST /api/task-reviews/{id}/start', toolsets },
  { name: 'task_review_verdict', route: 'POST /api/task-reviews/{id}/verdict', toolsets },
  { name: 'task_create', route: 'POST /api/tasks', toolsets },
  { name: 'task_child_create', route: 'POST /api/tasks/{id}/children', toolsets },
  { name: 'task_update', route: 'PATCH /api/tasks/{id}', toolsets, visibility: 'operator' },
  { name: 'task_publish', route: 'POST /api/tasks/{id}/publish', toolsets, visibility: 'operator' },
  { name: 'task_start', route: 'POST /api/tasks/{id}/start', toolsets, visibility: 'operator' },
  { name: 'task_fan_out', route: 'POST /api/tasks/{id}/runs/fan-out', toolsets, visibility: 'operator' },
  { name: 'task_cancel', route: 'POST /api/tasks/{id}/cancel', toolsets, visibility: 'operator' },
  { name: 'task_pause', route: 'POST /api/tasks/{id}/pause', toolsets, visibility: 'operator' },
  { name: 'task_resume', route: 'POST /api/tasks/{id}/resume', toolsets, visibility: 'operator' },
  { name: 'task_recover', route: 'POST /api/tasks/{id}/recover', toolsets, visibility: 'operator' },
  { name: 'task_run_retry', route: 'POST /api/runs/{id}/retry', toolsets, visibility: 'operator' },
  { name: 'task_run_recover', route: 'POST /api/runs/{id}/recover', toolsets, visibility: 'operator' },
  { name: 'task_run_cancel', route: 'POST /api/task-runs/{id}/cancel', toolsets, visibility: 'operator' },
  { name: 'task_board', route: 'GET /api/observe/tasks/dashboard', toolsets, visibility: 'operator' },
  { name: 'task_inbox', route: 'GET /api/observe/tasks/inbox', toolsets, visibility: 'operator' },
]
