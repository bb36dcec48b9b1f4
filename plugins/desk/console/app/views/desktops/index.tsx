import { useState } from 'preact/hooks'
import { api, type ReplyOf } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { go, linkTo, place } from '../../core/router.js'
import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { ConfirmAction } from '../../ui/confirm.js'
import { Action, Empty, Loading, Page, Problem } from '../../ui/parts.js'
import { type Actions, type Arrangement, actionsOf, type Desktop, type State } from './actions.js'
import { Canvas } from './canvas.js'
import { draggedWindow } from './drag.js'
import { choices } from './window.js'

const words = text.desktops

type Workspace = ReplyOf<'GET /api/workspaces'>['workspaces'][number]

/** The desktops of a workspace. The daemon's window manager holds them, so all browsers show the same. */
export function Desktops() {
  const [, chosen] = place.value
  const { data, error, reload } = useResource(signal => api('GET /api/workspaces', {}, signal), [], /^workspace\./)
  const workspaces = data?.workspaces ?? []
  const workspace = workspaces.find(({ id }) => id === chosen) ?? workspaces[0]
  return (
    <Columns>
      <Page title={text.views.desktops} command="svc desktop list">
        <Problem error={error} retry={reload} />
        {!data && error === undefined && <Loading />}
        {data && !workspace && <Empty command="svc workspace add">{words.noWorkspace}</Empty>}
        {workspace && <OneWorkspace key={workspace.id} workspace={workspace} workspaces={workspaces} />}
      </Page>
    </Columns>
  )
}

function OneWorkspace({
  workspace,
  workspaces,
}: {
  readonly workspace: Workspace
  readonly workspaces: readonly Workspace[]
}) {
  const [, , chosen] = place.value
  const at = { path: { workspace_id: workspace.id } }
  const state = useResource(
    signal => api('GET /api/workspaces/{workspace_id}/window-manager', at, signal),
    [workspace.id],
    /^window_manager\./,
  )
  const [latest, keep] = useState<State>()
  const [error, setError] = useState<unknown>()
  const read = state.data
  if (!read) return state.error === undefined ? <Loading /> : <Problem error={state.error} retry={state.reload} />
  // The reply to a command is newer than the last loaded state.
  const current = latest && latest.revision > read.revision ? latest : read
  const actions = actionsOf(workspace.id, current, keep, setError)
  const desktops = [...current.desktops].sort((a, b) => a.order - b.order)
  const desktop = desktops.find(({ id }) => id === chosen) ?? desktops[0]
  if (!desktop) return null
  return (
    <>
      <div class="desktops-head">
        {workspaces.length > 1 && (
          <label class="inline">
            <span class="unseen">{text.sessions.workspace}</span>
            <select value={workspace.id} onChange={event => go('desktops', event.currentTarget.value)}>
              {workspaces.map(({ id, name, root_dir: folder }) => (
                <option key={id} value={id}>
                  {name || folder}
                </option>
              ))}
            </select>
          </label>
        )}
        <nav class="tabs" aria-label={text.views.desktops}>
          {desktops.map(({ id, name }) => (
            <a
              key={id}
              data-desktop={id}
              href={linkTo('desktops', workspace.id, id)}
              aria-current={id === desktop.id ? 'page' : undefined}
              onDragOver={event => draggedWindow.value && event.preventDefault()}
              onDrop={event => {
                event.preventDefault()
                if (draggedWindow.value)
                  void actions.run('window.move', { window_id: draggedWindow.value, desktop_id: id })
              }}
            >
              {name}
            </a>
          ))}
        </nav>
        <div class="actions">
          <Action
            label={words.create}
            run={async () => {
              const before = new Set(current.desktops.map(({ id }) => id))
              const { snapshot } = await actions.send('desktop.create', {})
              const made = snapshot.desktops.find(({ id }) => !before.has(id))
              if (made) go('desktops', workspace.id, made.id)
            }}
          />
          <Rename key={`${desktop.id} ${desktop.name}`} desktop={desktop} actions={actions} />
          {desktops.length > 1 && (
            <ConfirmAction
              label={words.remove}
              title={words.removeTitle(desktop.name)}
              tone="danger"
              run={async () => {
                const rest = desktops.find(({ id }) => id !== desktop.id)
                await actions.send('desktop.delete', { desktop_id: desktop.id, move_to: rest?.id })
                go('desktops', workspace.id)
              }}
            >
              <p class="muted">{words.removeWhat}</p>
            </ConfirmAction>
          )}
          <button
            type="button"
            aria-disabled={current.history.undo.length === 0}
            onClick={() => current.history.undo.length > 0 && void actions.run('layout.undo', {})}
          >
            {words.undo}
          </button>
          <button
            type="button"
            aria-disabled={current.history.redo.length === 0}
            onClick={() => current.history.redo.length > 0 && void actions.run('layout.redo', {})}
          >
            {words.redo}
          </button>
        </div>
      </div>
      <Tools workspace={workspace} desktop={desktop.id} actions={actions} />
      <Problem error={error} />
      <Canvas key={desktop.id} workspace={workspace.id} state={current} desktop={desktop} actions={actions} />
      <p class="muted keys">{words.keys}</p>
    </>
  )
}

function Rename({ desktop, actions }: { readonly desktop: Desktop; readonly actions: Actions }) {
  const [name, setName] = useState(desktop.name)
  return (
    <ConfirmAction
      label={words.rename}
      title={words.renameTitle(desktop.name)}
      run={() => actions.send('desktop.update', { desktop_id: desktop.id, name })}
    >
      <label>
        {words.name}
        <input type="text" value={name} onInput={event => setName(event.currentTarget.value)} />
      </label>
    </ConfirmAction>
  )
}

const ARRANGEMENTS: readonly Arrangement[] = ['columns', 'rows', 'grid', 'main', 'stack']

/** Buttons that open and arrange windows and apply saved layouts. */
function Tools({
  workspace,
  desktop,
  actions,
}: {
  readonly workspace: Workspace
  readonly desktop: string
  readonly actions: Actions
}) {
  const sessions = useResource(
    signal => api('GET /api/sessions', { query: { workspace: workspace.id, limit: 50 } }, signal),
    [workspace.id],
    /^session\./,
  )
  const layouts = useResource(
    signal =>
      api(
        'GET /api/workspaces/{workspace_id}/window-manager/layout-profiles',
        { path: { workspace_id: workspace.id } },
        signal,
      ),
    [workspace.id],
    /^(?:resource|bundle|window_manager)/,
  )
  const all = [
    ...choices,
    ...(sessions.data?.sessions ?? []).map(({ id, name }) => ({
      title: name || id,
      app: 'sessions',
      pathname: `/${id}`,
    })),
  ]
  const [chosen, choose] = useState(0)
  const open = async () => {
    const choice = all[chosen]
    if (!choice) return
    const { app, pathname } = choice
    await actions.send('window.open', {
      ...{ app, desktop_id: desktop, route: { pathname, search: {} } },
      // One window per session and workspace; opening it again focuses it.
      instance_key: pathname,
    })
  }
  return (
    <div class="desktop-tools">
      <label>
        {words.show}
        <select value={chosen} onChange={event => choose(Number(event.currentTarget.value))}>
          {all.map(({ title, pathname, app }, n) => (
            <option key={`${app} ${pathname}`} value={n}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <Action label={words.open} tone="primary" run={open} />
      <label>
        {words.arrange}
        <select
          value=""
          onChange={event => {
            const mode = event.currentTarget.value
            event.currentTarget.value = ''
            if (mode === 'balance') void actions.run('layout.balance', { desktop_id: desktop })
            else if (mode !== '') void actions.run('layout.arrange', { desktop_id: desktop, mode })
          }}
        >
          <option value="">{words.choose}</option>
          {ARRANGEMENTS.map(mode => (
            <option key={mode} value={mode}>
              {words.arrangements[mode]}
            </option>
          ))}
          <option value="balance">{words.balance}</option>
        </select>
      </label>
      {(layouts.data?.records.length ?? 0) > 0 && (
        <label>
          {words.layout}
          <select
            value=""
            onChange={event => {
              const layout = event.currentTarget.value
              event.currentTarget.value = ''
              if (layout !== '') void actions.run('layout.replace', { layout_id: layout })
            }}
          >
            <option value="">{words.choose}</option>
            {layouts.data?.records.map(({ id, spec }) => (
              <option key={id} value={id}>
                {(Object(spec) as { display_name?: string }).display_name ?? id}
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  )
}
