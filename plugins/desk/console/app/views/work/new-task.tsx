import { useState } from 'preact/hooks'
import { api } from '../../core/api.js'
import { text } from '../../text.js'
import { Action } from '../../ui/parts.js'
import { WorkspaceChoice } from '../../ui/workspace-choice.js'

const words = text.work

export function NewTask({ done }: { readonly done: (id?: string) => void }) {
  const [title, setTitle] = useState('')
  const [isDraft, setDraft] = useState(true)
  const [workspace, setWorkspace] = useState('')
  const create = async () => {
    const scope = workspace === '' ? ('global' as const) : ('workspace' as const)
    const body = { title, scope, draft: isDraft, ...(workspace !== '' && { workspace }) }
    done((await api('POST /api/tasks', { body })).task.id)
  }
  return (
    <form class="detail" onSubmit={event => event.preventDefault()}>
      <header>
        <h2>{words.create}</h2>
        <button type="button" class="quiet" onClick={() => done()}>
          {text.close}
        </button>
      </header>
      <label>
        {words.name}
        <input type="text" value={title} onInput={event => setTitle(event.currentTarget.value)} />
      </label>
      <WorkspaceChoice value={workspace} set={setWorkspace} />
      <label class="check">
        <input type="checkbox" checked={isDraft} onChange={event => setDraft(event.currentTarget.checked)} />
        {words.draft}
      </label>
      <div class="actions">
        <Action label={words.add} tone="primary" run={create} />
      </div>
    </form>
  )
}
