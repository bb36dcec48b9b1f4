import { api } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { text } from '../../text.js'
import { Diff, diffsOf } from '../../ui/diff.js'
import { Empty, Loading, Problem } from '../../ui/parts.js'

/** Maximum number of conversation entries to read. */
const MOST_ENTRIES = 200

/** The changes that the tools of a run's agent reported, one file after the other. */
export function Changes({ at }: { readonly at: { readonly workspace_id: string; readonly session_id: string } }) {
  const { data, error, reload } = useResource(
    signal =>
      api(
        'GET /api/workspaces/{workspace_id}/sessions/{session_id}/transcript',
        { path: at, query: { limit: MOST_ENTRIES } },
        signal,
      ),
    [at.session_id],
  )
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  const diffs = data.entries.flatMap(({ message }) => message.parts.flatMap(({ output }) => diffsOf(output)))
  if (diffs.length === 0) return <Empty>{text.runs.noChanges}</Empty>
  return (
    <>
      {diffs.map((diff, n) => (
        <Diff key={n} {...diff} />
      ))}
    </>
  )
}
