import { api, type ReplyOf } from '../../core/api.js'
import { ago } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Badge, Command, Empty, Loading, Problem } from '../../ui/parts.js'

type Item = ReplyOf<'GET /api/inbox'>['items'][number]

/** The view in which a person handles an item. */
function placeOf(item: Item): string | undefined {
  if ('session_id' in item && item.session_id) return linkTo('sessions', item.session_id)
  return 'task_id' in item ? linkTo('work', item.task_id) : undefined
}

const keyOf = (item: Item): string => {
  if ('interaction_id' in item) return item.interaction_id
  if ('task_id' in item) return `${item.kind} ${item.task_id} ${item.task_run_id}`
  return 'suggestion_id' in item ? item.suggestion_id : item.item_id
}

/** Questions, approvals, reviews and failures that wait for a person. */
export function Inbox() {
  const { data, error, reload } = useResource(signal => api('GET /api/inbox', {}, signal), [], /./)
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  if (data.items.length === 0) return <Empty>{text.home.nothing}</Empty>
  return (
    <ul class="cards">
      {data.items.map(item => {
        const to = placeOf(item)
        return (
          <li key={keyOf(item)} class="card attention">
            <Badge of={item.kind} />
            <div class="grow">
              {to ? <a href={to}>{item.title}</a> : <strong>{item.title}</strong>}
              {'agent_name' in item && item.agent_name && <p class="muted clip">{item.agent_name}</p>}
            </div>
            <span class="muted">{ago(item.created_at)}</span>
            {!to && 'command' in item && item.command && <Command line={item.command} />}
          </li>
        )
      })}
    </ul>
  )
}
