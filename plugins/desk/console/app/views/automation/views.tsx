import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { List } from '../../ui/list.js'
import { Calendar } from './calendar.js'
import { jobs, triggers } from './definitions.js'

const words = text.automation

export function AutomationView({ part, at: [id, ...rest] }: { readonly part: string; readonly at: readonly string[] }) {
  const tab = (name: string, title: string, ...address: readonly string[]) => (
    <a href={linkTo('automation', name, ...address)} aria-current={part === name ? 'page' : undefined}>
      {title}
    </a>
  )
  const tabs = (
    <nav class="tabs" aria-label={words.title}>
      {tab('jobs', words.jobs)}
      {tab('triggers', words.triggers)}
      {tab('calendar', text.calendar.title, 'week')}
    </nav>
  )
  if (part === 'calendar')
    return (
      <Calendar span={id === 'month' ? 'month' : 'week'} day={rest[0]} selected={rest[1]}>
        {tabs}
      </Calendar>
    )
  const edits = rest[0] === 'edit'
  const view = part === 'triggers' ? triggers(edits) : jobs(edits)
  return (
    // biome-ignore lint/suspicious/noExplicitAny: each list has items of its own type
    <List<any> key={part} view={view} path={['automation', part === 'triggers' ? part : 'jobs']} selected={id}>
      {tabs}
    </List>
  )
}
