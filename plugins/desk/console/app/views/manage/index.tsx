import { linkTo, place } from '../../core/router.js'
import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { List, type ListView } from '../../ui/list.js'
import { Empty, Page } from '../../ui/parts.js'
import { agents } from './agents.js'
import { doctor } from './doctor.js'
import { extensions } from './extensions.js'
import { logs } from './logs.js'
import { plugins } from './plugins.js'
import { settings } from './settings.js'
import { skills } from './skills.js'

/** The views of this part: each is a description of a list. */
// biome-ignore lint/suspicious/noExplicitAny: each list has items of its own type, which only its own functions get
export const manageViews: readonly ListView<any>[] = [agents, skills, extensions, settings, doctor, logs, plugins]

export function Manage() {
  const [, name, id] = place.value
  const view = manageViews.find(one => one.name === name)
  if (view) return <List key={view.name} view={view} path={['manage', view.name]} selected={id} />
  return (
    <Columns>
      <Page title={text.manage.title} command="svc help">
        {name !== undefined && <Empty>{text.unknownView}</Empty>}
        <ul class="tiles">
          {manageViews.map(({ name, title, command }) => (
            <li key={name}>
              <a class="card tile" href={linkTo('manage', name)}>
                <strong>{title}</strong>
                <code>{command}</code>
              </a>
            </li>
          ))}
        </ul>
      </Page>
    </Columns>
  )
}
