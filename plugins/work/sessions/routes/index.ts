import type { Route } from '../../../../kernel/plugin.js'
import type { SessionsService } from '../service.js'
import { attachmentRoutes } from './attachments.js'
import { attentionRoutes } from './attention.js'
import { catalogRoutes } from './catalog.js'
import { changingRoutes } from './changing.js'
import { conversationRoutes } from './conversation.js'
import { forkRoutes } from './fork.js'
import { goalRoutes } from './goal.js'
import { inboxRoutes, inspectionRoutes } from './inspection.js'
import { queueRoutes } from './queue.js'
import { readingRoutes } from './reading.js'
import { rewindRoutes } from './rewind.js'
import { runtimeRoutes } from './runtime.js'

/** All routes of sessions. */
export const sessionRoutes: readonly Route<SessionsService>[] = [
  ...attentionRoutes,
  ...attachmentRoutes,
  ...catalogRoutes,
  ...readingRoutes,
  ...changingRoutes,
  ...inboxRoutes,
  ...inspectionRoutes,
  ...queueRoutes,
  ...conversationRoutes,
  ...rewindRoutes,
  ...forkRoutes,
  ...runtimeRoutes,
  ...goalRoutes,
]
