import type { NativeTool } from '../tools/api.js'

const toolsets = ['automation'] as const

/** Tools that let agents list and manage jobs, triggers and runs. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'automation_jobs_list', route: 'GET /api/automation/jobs', toolsets },
  { name: 'automation_jobs_info', route: 'GET /api/automation/jobs/{id}', toolsets },
  { name: 'automation_jobs_history', route: 'GET /api/automation/jobs/{id}/runs', toolsets },
  { name: 'automation_jobs_create', route: 'POST /api/automation/jobs', toolsets },
  { name: 'automation_jobs_update', route: 'PATCH /api/automation/jobs/{id}', toolsets },
  { name: 'automation_jobs_delete', route: 'DELETE /api/automation/jobs/{id}', toolsets },
  { name: 'automation_jobs_trigger', route: 'POST /api/automation/jobs/{id}/trigger', toolsets },
  { name: 'automation_triggers_list', route: 'GET /api/automation/triggers', toolsets },
  { name: 'automation_triggers_info', route: 'GET /api/automation/triggers/{id}', toolsets },
  { name: 'automation_triggers_history', route: 'GET /api/automation/triggers/{id}/runs', toolsets },
  { name: 'automation_triggers_create', route: 'POST /api/automation/triggers', toolsets },
  { name: 'automation_triggers_update', route: 'PATCH /api/automation/triggers/{id}', toolsets },
  { name: 'automation_triggers_delete', route: 'DELETE /api/automation/triggers/{id}', toolsets },
  { name: 'automation_runs_list', route: 'GET /api/automation/runs', toolsets },
  { name: 'automation_runs_info', route: 'GET /api/automation/runs/{id}', toolsets },
]
