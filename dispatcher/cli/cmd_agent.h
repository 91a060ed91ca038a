/* `causeway agent`: what `causeway run` starts on each host of a job. */
#ifndef DISPATCHER_CMD_AGENT_H
#define DISPATCHER_CMD_AGENT_H

int cmd_agent(int argc, char **argv);

#endif
