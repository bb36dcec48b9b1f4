import { useEffect } from 'preact/hooks'
import { api } from '../core/api.js'
import { useResource } from '../core/resource.js'
import { text } from '../text.js'

/** A select field of workspaces; default: the first one. */
export function WorkspaceChoice({ value, set }: { readonly value: string; readonly set: (id: string) => void }) {
  const { data } = useResource(signal => api('GET /api/workspaces', {}, signal), [])
  const first = data?.workspaces[0]?.id
  useEffect(() => {
    if (value === '' && first !== undefined) set(first)
  }, [first])
  return (
    <label>
      {text.sessions.workspace}
      <select value={value} onChange={event => set(event.currentTarget.value)}>
        {data?.workspaces.map(({ id, name, root_dir: folder }) => (
          <option key={id} value={id}>
            {name || folder}
          </option>
        ))}
      </select>
    </label>
  )
}
