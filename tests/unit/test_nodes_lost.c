/* Nodes that are lost, or stand still for a while, and such as do not start. */
#include "common/clock.h"
#include "dispatcher/status/rundir.h"
#include "tests/unit/nodes_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("nodes that are lost");

/* --- losses --- */

TEST(node_is_killed)
{
    uint64_t from_ns;
    pid_t rank;

    open_ready(2, TIMEOUT_NS);
    start_rank(0, "exec sleep 1000");
    rank = told.made[0].pid;
    CU_ASSERT_EQUAL(kill(rank, 0), 0);
    from_ns = cw_clock_ns();
    kill(node_pid(0), SIGKILL);
    CU_ASSERT_TRUE(await_count(&told.host_losses, 1));
    /* at once: whoever asks for the node is told that there is none */
    CU_ASSERT_TRUE(cw_clock_ns() - from_ns < TIMEOUT_NS);
    CU_ASSERT_TRUE(told.lost[0]);
    CU_ASSERT_PTR_NOT_NULL(strstr(told.host_why.text, "host one"));
    CU_ASSERT_TRUE(is_gone(rank));
    remote_detach(here.remote, (struct cw_process){0}, true);
    close_rank(0);
    told.started[0] = false;
    start_rank_on(1, 0, "exit 0", -1, -1);
    CU_ASSERT_TRUE(await_told(&told.ended[0]));
    close_rank(0);
    close_all();
}

static void on_wants(void *ctx)
{
    (void)ctx;
}

/* What had not passed its gate is not told any more, nor is how a rank ended. */
TEST(what_waited_is_lost_with_its_host)
{
    struct gate gate;
    uint64_t token;
    size_t used = 0;

    gate_init(&gate, on_wants, NULL);
    hold_ranks(&gate);
    open_ready(1, TIMEOUT_NS);
    start_rank(0, "echo out");
    start_rank(1, "echo out; exec sleep 1000");
    CU_ASSERT_TRUE(await_told(&told.ends[0]));
    kill(node_pid(0), SIGKILL);
    CU_ASSERT_TRUE(await_count(&told.host_losses, 1));
    CU_ASSERT_TRUE(told.lost[0]);
    CU_ASSERT_TRUE(told.lost[1]);
    CU_ASSERT_TRUE(gate_next(&gate, &token));
    CU_ASSERT_TRUE(gate_covered(&gate, token));
    remote_pass(here.remote);
    for (uint32_t rank = 0; rank < 2; rank++) {
        CU_ASSERT_FALSE(told.ended[rank]);
        CU_ASSERT_FALSE(read_some(told.made[rank].channel[LAUNCH_STDOUT], &used));
        remote_detach(here.remote, (struct cw_process){.rank = rank}, true);
        close_rank(rank);
    }
    CU_ASSERT_EQUAL(used, 0);
    close_all();
    hold_ranks(NULL);
}

/* The new node knows neither the program nor the environment. */
TEST(lost_host_returns)
{
    open_ready(1, 1000000000ull);
    start_rank(0, "exec sleep 1000");
    kill(node_pid(0), SIGKILL);
    CU_ASSERT_TRUE(await_count(&told.host_losses, 1));
    CU_ASSERT_PTR_NULL(nodes_mux(here.nodes, 0));
    remote_detach(here.remote, (struct cw_process){0}, true);
    close_rank(0);
    CU_ASSERT_TRUE(await_count(&told.host_returns, 1));
    CU_ASSERT_PTR_NOT_NULL(nodes_mux(here.nodes, 0));
    told.started[0] = false;
    start_rank(0, "exit 3");
    CU_ASSERT_TRUE(await_told(&told.ended[0]));
    CU_ASSERT_EQUAL(WEXITSTATUS(told.status[0]), 3);
    CU_ASSERT_EQUAL(told.failures, 0);
    close_rank(0);
    /* again, with a try in vain between */
    kill(node_pid(0), SIGKILL);
    CU_ASSERT_TRUE(await_count(&told.host_losses, 2));
    write_launcher("[ -e $0.tried ] || { >$0.tried; exit 255; }");
    CU_ASSERT_TRUE(await_count(&told.host_returns, 2));
    CU_ASSERT_EQUAL(told.failures, 0);
    close_all();
}

TEST(node_stands_still_for_too_long)
{
    pid_t node, rank;

    open_ready(1, 1000000000ull);
    start_rank(0, "exec sleep 1000");
    node = node_pid(0);
    rank = told.made[0].pid;
    kill(node, SIGSTOP);
    CU_ASSERT_TRUE(await_count(&told.host_losses, 1));
    CU_ASSERT_TRUE(told.lost[0]);
    CU_ASSERT_EQUAL(kill(rank, 0), 0);
    /* it comes back, and is fenced */
    kill(node, SIGCONT);
    CU_ASSERT_TRUE(is_gone(rank));
    CU_ASSERT_TRUE(is_gone(node));
    remote_detach(here.remote, (struct cw_process){0}, true);
    close_rank(0);
    close_all();
}

TEST(node_stands_still_for_a_while)
{
    uint64_t until_ns;
    pid_t node;

    open_ready(1, TIMEOUT_NS);
    start_rank(0, "echo before; sleep 4; echo after");
    node = node_pid(0);
    kill(node, SIGSTOP);
    told.alives = 0;
    until_ns = loop_look(here.loop) + TIMEOUT_NS * 3 / 4;
    while (loop_now_ns(here.loop) < until_ns)
        loop_turn(here.loop, until_ns);
    CU_ASSERT_TRUE(told.alives > 0);
    kill(node, SIGCONT);
    CU_ASSERT_TRUE(await_told(&told.ended[0]));
    read_all(told.made[0].channel[LAUNCH_STDOUT], 0, NULL);
    CU_ASSERT_STRING_EQUAL(here.output, "before\nafter\n");
    CU_ASSERT_EQUAL(told.host_losses, 0);
    close_rank(0);
    close_all();
}

/* It and what it started are here to be ended. */
TEST(own_node_stands_still)
{
    open_ready(0, 1000000000ull);
    start_rank(0, "exec sleep 1000");
    kill(node_pid(0), SIGSTOP);
    CU_ASSERT_TRUE(await_count(&told.host_losses, 1));
    CU_ASSERT_TRUE(told.lost[0]);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(told.host_why.text, "the node of this machine (causeway node, pid "));
    CU_ASSERT_PTR_NOT_NULL(strstr(told.host_why.text, " s (is it stopped?)"));
    CU_ASSERT_TRUE(is_gone(told.made[0].pid));
    rundir_remove_left(nodes_facts(here.nodes, 0)->dir);
    remote_detach(here.remote, (struct cw_process){0}, true);
    close_rank(0);
    close_all();
}

/* What its own node said in the meantime was not heard; that of another host has ended. */
TEST(dispatcher_stands_still)
{
    open_ready(0, 1000000000ull);
    start_rank(0, "read x; exit 3");
    kill(node_pid(0), SIGSTOP);
    usleep(2000000);
    kill(node_pid(0), SIGCONT);
    CU_ASSERT_TRUE(await_told(&told.ended[0]));
    CU_ASSERT_EQUAL(told.host_losses, 0);
    close_rank(0);
    close_all();
}

TEST(node_is_told_to_end)
{
    pid_t rank;

    open_ready(1, TIMEOUT_NS);
    start_rank(0, "exec sleep 1000");
    rank = told.made[0].pid;
    kill(node_pid(0), SIGTERM);
    CU_ASSERT_TRUE(await_count(&told.host_losses, 1));
    CU_ASSERT_TRUE(is_gone(rank));
    remote_detach(here.remote, (struct cw_process){0}, true);
    close_rank(0);
    close_all();
}

/* All that the node has started ends with it, without a word of the dispatcher. */
TEST(dispatcher_is_gone)
{
    pid_t node, rank;

    open_ready(1, 1000000000ull);
    start_rank(0, "sleep 1000 & exec sleep 1000");
    node = node_pid(0);
    rank = told.made[0].pid;
    close_rank(0);
    free_nodes();
    CU_ASSERT_TRUE(is_gone(node));
    CU_ASSERT_TRUE(is_gone(rank));
    CU_ASSERT_TRUE(is_gone(-rank));
    remove_site();
}

/* --- starts that fail --- */

static void expect_failure(const char *text)
{
    CU_ASSERT_TRUE(await_count(&told.failures, 1));
    CU_ASSERT_FALSE(told.ready);
    if (!strstr(told.failure.text, text))
        fprintf(stderr, "# '%s' is not in: %s\n", text, told.failure.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(told.failure.text, text));
    CU_ASSERT_PTR_NOT_NULL(strstr(told.failure.text, "host one"));
    close_all();
}

TEST(launcher_fails)
{
    open_site("echo 'Permission denied (publickey).' >&2; exit 255");
    open_nodes(1, TIMEOUT_NS);
    expect_failure("Permission denied (publickey).");
    CU_ASSERT_STRING_EQUAL(told.line, "Permission denied (publickey).");
    open_site("exit 3");
    open_nodes(1, TIMEOUT_NS);
    expect_failure("ended with code 3");
    open_site("");
    unlink(here.launcher);
    open_nodes(1, TIMEOUT_NS);
    expect_failure("No such file");
}

/* As MaxStartups of sshd has it: the third connection is taken. */
TEST(connections_are_dropped)
{
    open_site("n=$(cat $0.n 2>/dev/null || echo 0); echo $((n + 1)) >$0.n\n"
              "[ $n -lt 2 ] || rm $0.n\n[ $n -ge 2 ] || { echo 'kex_exchange_identification: "
              "Connection closed by remote "
              "host' >&2; exit 255; }");
    open_nodes(1, TIMEOUT_NS);
    CU_ASSERT_TRUE(await_told(&told.ready));
    close_all();
}

TEST(shell_that_prints)
{
    open_site("echo Welcome");
    open_nodes(1, TIMEOUT_NS);
    CU_ASSERT_TRUE(await_told(&told.ready));
    close_all();
    open_site("echo 'This account is closed.'; exit 1");
    open_nodes(1, TIMEOUT_NS);
    expect_failure("This account is closed.");
    open_site("yes no");
    open_nodes(1, TIMEOUT_NS);
    expect_failure("none of them of Causeway");
}

TEST(another_version)
{
    open_site("printf "
              "'\\nCAUSEWAY-NODE:2f1c\\n\\011\\0\\0\\0\\003\\0\\0\\0\\143\\0\\0\\0\\003\\0009.9'; "
              "sleep 5; exit 0");
    open_nodes(1, TIMEOUT_NS);
    expect_failure("it has Causeway 9.9 (nodes' protocol 99)");
}
