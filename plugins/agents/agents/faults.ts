import { shown } from '../../../kernel/kit/text.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { AgentErrors } from './api.js'
import type { Broken } from './definition/view.js'

export function invalid({ name, path, error }: Broken) {
  return AgentErrors.agent_invalid(`the definition of agent ${name} is not valid: ${error.message}`, {
    details: { path, error_kind: error.kind },
    next: `edit ${path}`,
  })
}

export function notFound(name: string, workspace: Workspace | undefined) {
  const where = workspace ? ` in workspace ${workspace.name}` : ''
  return AgentErrors.agent_not_found(`there is no agent ${shown(name)}${where}`)
}

export function notRunnable(name: string, { problem, install }: { problem: string; install?: string | undefined }) {
  const help = install
    ? `install one: ${install}; or use --agent report, which needs no provider`
    : 'use --agent report'
  return AgentErrors.agent_not_runnable(`agent ${name} cannot run: ${problem}; ${help}`, {
    ...(install ? { details: { install } } : {}),
  })
}
