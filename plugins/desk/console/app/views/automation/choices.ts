import { api } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { text } from '../../text.js'
import type { FormField } from '../../ui/form.js'

interface Choices {
  readonly agents: readonly string[]
  readonly workspaces: readonly (readonly [id: string, name: string])[]
}

/** Agents and workspaces for the fields of a definition; undefined until loaded. */
export function useChoices(): Choices | undefined {
  const { data } = useResource(async signal => {
    const [{ agents }, { workspaces }] = await Promise.all([
      api('GET /api/agents', {}, signal),
      api('GET /api/workspaces', {}, signal),
    ])
    return {
      agents: [...new Set(agents.map(({ name }) => name))],
      workspaces: workspaces.map(({ id, name, root_dir: folder }) => [id, name || folder] as const),
    }
  }, [])
  return data
}

export const agentField = ({ agents }: Choices, value = agents[0] ?? ''): FormField => ({
  ...{ name: 'agent', label: text.automation.agent, kind: 'select', value },
  // The selected agent may have been deleted.
  options: [...new Set([value, ...agents])].map(name => [name, name] as const),
})

export const workspaceField = ({ workspaces }: Choices): FormField => ({
  ...{ name: 'workspace', label: text.jobEditor.workspace, kind: 'select', value: workspaces[0]?.[0] ?? '' },
  options: [...workspaces, ['', text.jobEditor.global]],
})
