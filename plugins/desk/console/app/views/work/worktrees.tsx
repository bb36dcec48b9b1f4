import { useState } from 'preact/hooks'
import { api, type ReplyOf } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { go, linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { GitPatch } from '../../ui/diff.js'
import { Badge, Command, Empty, Fields, Loading, Problem } from '../../ui/parts.js'

type Worktree = ReplyOf<'GET /api/workspaces/{workspace_id}/worktrees'>['worktrees'][number]
type File = ReplyOf<'GET /api/workspaces/{workspace_id}/worktrees/{name}/diff'>['files'][number]

const words = text.worktrees
/** Maximum number of workspaces whose worktrees are listed. */
const MOST_WORKSPACES = 50

/** The git worktrees of all workspaces. */
export function Worktrees({ selected }: { readonly selected: string | undefined }) {
  const { data, error, reload } = useResource(
    async signal => {
      const { workspaces } = await api('GET /api/workspaces', {}, signal)
      const lists = workspaces.slice(0, MOST_WORKSPACES).map(async workspace => {
        const path = { workspace_id: workspace.id }
        const { worktrees } = await api('GET /api/workspaces/{workspace_id}/worktrees', { path }, signal)
        return worktrees.map(worktree => ({ worktree, workspace }))
      })
      return (await Promise.all(lists)).flat()
    },
    [],
    /^(?:session|task)\./,
  )
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  if (data.length === 0) return <Empty command="svc session fork">{words.none}</Empty>
  return (
    <div class="table" tabIndex={0} role="region" aria-label={words.title}>
      <table>
        <thead>
          <tr>
            <th scope="col">{words.name}</th>
            <th scope="col">{text.runs.branch}</th>
            <th scope="col" class="wide">
              {text.sessions.workspace}
            </th>
            <th scope="col">{text.sessions.title}</th>
          </tr>
        </thead>
        <tbody>
          {data.map(({ worktree: { name, branch, sessions }, workspace }) => {
            const isShown = selected === `${workspace.id}/${name}`
            return (
              <tr key={`${workspace.id}/${name}`} class={isShown ? 'selected' : ''}>
                <td>
                  <a href={linkTo('work', 'worktrees', workspace.id, name)} aria-current={isShown ? 'true' : undefined}>
                    {name}
                  </a>
                </td>
                <td>{branch ?? text.home.none}</td>
                <td class="wide">{workspace.name}</td>
                <td>{sessions.length}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

/** A worktree with its changes, one file after the other. */
export function OneWorktree({ workspace, name }: { readonly workspace: string; readonly name: string }) {
  const [pages, setPages] = useState<readonly string[]>([])
  const path = { workspace_id: workspace, name }
  const { data, error, reload } = useResource(
    async signal => {
      const read = (after?: string) =>
        api(
          'GET /api/workspaces/{workspace_id}/worktrees/{name}/diff',
          { path, query: after === undefined ? {} : { after } },
          signal,
        )
      const all = await Promise.all([read(), ...pages.map(read)])
      return { ...all[0]!, files: all.flatMap(({ files }) => files), next_after: all.at(-1)?.next_after }
    },
    [workspace, name, pages.length],
  )
  return (
    <div class="detail worktree">
      <header>
        <h2>{name}</h2>
        <button type="button" class="quiet" onClick={() => go('work', 'worktrees')}>
          {text.close}
        </button>
      </header>
      <Command line={`svc worktree diff ${name} --workspace ${workspace}`} />
      <div class="actions">
        <button type="button" onClick={reload}>
          {words.refresh}
        </button>
      </div>
      {!data && (error === undefined ? <Loading /> : <Problem error={error} retry={reload} />)}
      {data && <About worktree={data.worktree} base={data.base} total={data.total} />}
      {data && data.files.length === 0 && <Empty>{words.unchanged}</Empty>}
      {data?.files.map(file => (
        <Changed key={file.path} file={file} />
      ))}
      {data?.next_after !== undefined && (
        <div class="actions">
          <button type="button" onClick={() => setPages([...pages, data.next_after!])}>
            {words.more}
          </button>
        </div>
      )}
    </div>
  )
}

function About({
  worktree,
  base,
  total,
}: {
  readonly worktree: Worktree
  readonly base: string
  readonly total: number
}) {
  const sessions = worktree.sessions.map(id => (
    <a key={id} href={linkTo('sessions', id)}>
      {id}
    </a>
  ))
  return (
    <Fields
      of={[
        [text.runs.branch, worktree.branch],
        [text.sessions.folder, worktree.folder],
        [words.base, base.slice(0, 12)],
        [text.sessions.title, sessions.length > 0 && <>{sessions}</>],
        [words.files, total],
      ]}
    />
  )
}

function Changed({ file }: { readonly file: File }) {
  const { path, status, additions, deletions, patch, truncated } = file
  return (
    <section class="changed" aria-label={path}>
      <p>
        <Badge of={status} />{' '}
        <span class="muted">{additions === undefined ? words.binary : `+${additions} −${deletions}`}</span>
      </p>
      {patch === undefined ? <p class="path">{path}</p> : <GitPatch path={path} patch={patch} />}
      {truncated && <p class="muted">{words.truncated}</p>}
    </section>
  )
}
