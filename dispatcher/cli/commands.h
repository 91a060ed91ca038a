/* The subcommands of `causeway`. argv[0] is the command's name. Each returns the exit code: 0, 1
 * when something failed or is not there, 2 for bad usage; --help says more. */
#ifndef DISPATCHER_COMMANDS_H
#define DISPATCHER_COMMANDS_H

int cmd_run(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_down(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_ckpt(int argc, char **argv);
int cmd_doctor(int argc, char **argv); /* starts short-lived children: from the only thread */
int cmd_model(int argc, char **argv);
int cmd_tunnel(int argc, char **argv);
int cmd_door(int argc, char **argv); /* `causeway tunnel --listen ADDRESS TO ...` */

/* For causeway run, which starts it on each host of a job, and for those commands that ask hosts.
 */
int cmd_node(int argc, char **argv);
int cmd_keep(int argc, char **argv); /* started by it, for each service of a grid that it starts */

#endif
